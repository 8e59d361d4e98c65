"""The backlog limit of the functions beside the model that the simulation goes by, on backlogs drawn at random."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from bench.overload.backlog import Backlog, Class
from tests.function_values import worth

NOW_MS = 1_800_000_000_000
CASES = 100


def drawn(draw: random.Random) -> Backlog:
    """Draw a contract and what waits: bunches of jobs that are due together, from nearly none to far too many."""
    names = ["a", "b", "c"][: draw.choice((1, 2, 3, 3, 3))]
    deadlines = [draw.choice((1500, 6000, 6000, 18_000, 90_000, 3_600_000)) for _ in names]
    shares = [draw.randint(1, 9) for _ in names]
    backlog = Backlog(
        draw.choice((1, 6)),
        draw.choice((0, 200)),
        draw.choice((0.5, 0.7, 1)),
        {
            name: Class(deadline_ms, share / sum(shares), draw.choice((30, 75, 205)))
            for name, deadline_ms, share in zip(names, deadlines, shares, strict=True)
        },
    )
    for name, one in backlog.classes.items():
        for _ in range(draw.randint(0, 4)):
            due = NOW_MS + draw.randint(0, one.deadline_ms)
            backlog.due[name] += [due + draw.randint(0, 500) for _ in range(round(10 ** draw.uniform(0, 3)))]
        backlog.due[name].sort()
    return backlog


def frame(backlog: Backlog) -> str:
    classes = ", ".join(
        f"{name} = {{ deadline_ms = {one.deadline_ms}, share = {one.share!r}, expected_service_ms = {one.service_ms} }}"
        for name, one in backlog.classes.items()
    )
    return (
        f"local q = {{ p = '', now = {NOW_MS}, s = {{ backlog_limit = {backlog.limit}, dispatch = 'edf',"
        f" max_running = {backlog.slots}, prediction_min_completions = 20, expected_service_ms = 1,"
        f" timings = {{ margin_ms = {backlog.margin_ms} }}, cost_classes = {{}}, classes = {{ {classes} }} }} }} "
    )


def test_function_and_model_refuse_the_same(client: Any) -> None:
    draw = random.Random(7)  # the same every time
    seen: Counter[int] = Counter()
    for case in range(CASES):
        backlog = drawn(draw)
        client.flushdb()
        for name, due in backlog.due.items():
            client.sadd("queue:pairs", f"{name}:-")
            if due:
                client.zadd(f"queue:ready:{name}:-", {f"{name}{number}": one for number, one in enumerate(due)})
        asked = [
            (name, deadline)
            for name, one in backlog.classes.items()
            for deadline in (NOW_MS + one.deadline_ms, NOW_MS + draw.randint(1, 2 * one.deadline_ms))
        ]
        calls = [f"B.full(q, {{}}, '{name}', {len(backlog.due[name])}, {deadline})" for name, deadline in asked]
        said = worth(client, f"{frame(backlog)} return {{ {', '.join(f'{call} and 1 or 0' for call in calls)} }}")
        modelled = [int(backlog.full(name, NOW_MS, deadline)) for name, deadline in asked]
        assert said == modelled, f"case {case}: {backlog}, {asked}"
        seen.update(said)
    assert min(seen[0], seen[1]) > 50, seen
