"""Measure what is left under overload, policy by policy: `python -m bench.overload_bench`.

Prints the table, and writes bench-results/overload.json and bench-results/overload.svg. The policies of one load run at
the same time, some at once, each on a queue of its own. A goal that is missed is reported as missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.environments import ROOT
from bench.lab import Lab
from bench.overload.picture import draw
from bench.overload.plan import BACKLOG_LIMIT, CAPACITY_PER_S, FASTER, SLOTS, Policy, Shape
from bench.overload.scoring import Score
from bench.processes import die_with_parent, end_on_sigterm
from bench.rows import Row

RESULTS = Path("bench-results")
# From empty it takes the longest deadline until every class is served at its lasting rate: 900 s.
STEADY = tuple(Shape(f"{load}x", load, warm_s=900 / FASTER, count_s=900 / FASTER) for load in (2, 4, 8))
# 60 s of 300 s, after one such period; the load goes on until the last of the counted jobs has had its time.
BURST = Shape(
    "burst",
    1.0,
    warm_s=300 / FASTER,
    count_s=1200 / FASTER,
    tail_s=900 / FASTER,
    burst=(3.0, 60 / FASTER, 300 / FASTER),
)
# A look at whether all of it works; nothing is steady yet.
SHORT = (Shape("short", 4, warm_s=100 / FASTER, count_s=100 / FASTER, tail_s=10 / FASTER),)
_AT_ONCE = {"2x": 3, "short": 3, "8x": 3, "burst": 3}
_EXTRA_S = 90


def runs(
    shapes: Sequence[Shape], policies: Sequence[Policy], most: int = len(Policy)
) -> Iterator[tuple[Shape, Sequence[Policy]]]:
    """Give what runs at the same time: less of it where the figures are held against goals, or the load is heavy."""
    for shape in shapes:
        at_once = min(most, _AT_ONCE.get(shape.name, most))
        for start in range(0, len(policies), at_once):
            yield shape, policies[start : start + at_once]


def measure(lab: Lab, shape: Shape, policies: Sequence[Policy], seed: int, backlog_limit: float) -> list[Score]:
    """Run one load under several policies at once; raises SystemExit where one of them fails."""
    lab.client.flushall()
    processes = []
    for policy in policies:
        plan = {"policy": policy.value, "shape": asdict(shape), "seed": seed, "backlog_limit": backlog_limit}
        command = [sys.executable, "-m", "bench.overload.run", lab.url, json.dumps(plan)]
        processes.append(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
            )
        )
    scores = []
    try:
        for policy, process in zip(policies, processes, strict=True):
            said, error = process.communicate(timeout=shape.lasts_s + _EXTRA_S)
            if process.returncode != 0:
                raise SystemExit(f"{policy.value} at {shape.name} ended with {process.returncode}: {error[-800:]}")
            scores.append(Score.of(json.loads(said.splitlines()[-1])))
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
                process.wait(30)
    return scores


def goals(scores: Sequence[Score]) -> list[Row]:
    """Hold earliest deadline first with its backlog limit against the goals."""
    found = {one.shape: one for one in scores if one.policy == Policy.EDF_LIMIT}
    steady, burst = found.get("2x"), found.get("burst")
    rows = []
    if steady is not None:
        least = min(steady.fair, key=lambda name: steady.fair[name])
        rows += [
            Row("overload_in_time", [steady.in_time], "of capacity", 0.95, True, "2×"),
            Row("overload_missed", [steady.missed], "of accepted", 0.01, False, "2×"),
            Row("overload_fair", [steady.least_fair], "of fair share", 0.8, True, f"2×, the least served is {least}"),
        ]
    if burst is not None:
        rows.append(Row("overload_burst", [burst.in_time], "of jobs", 0.93, True, "3× for 60 of 300 s, mean 1.0×"))
    return rows


def lines(scores: Sequence[Score]) -> Iterator[str]:
    """Give the table: a line a run."""
    names = list(scores[0].fair)
    yield (
        f"{'load':<6} {'policy':<18} {'in time':>8} {'missed':>8}"
        + "".join(f"{name:>15}" for name in names)
        + "    asked accepted    tries"
    )
    for one in scores:
        fair = "".join(f"{one.fair[name]:>15.3f}" for name in names)
        counts = f"{one.asked:>8} {one.accepted:>8} {one.tries:>8}"
        yield f"{one.shape:<6} {one.policy:<18} {one.in_time:>8.3f} {one.missed:>8.4f}{fair} {counts}"


def write(scores: Sequence[Score], rows: Sequence[Row], folder: Path, title: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = [
        {"name": f"{one.policy} {one.shape}", "value": one.in_time, "target": None, "met": None, **one.as_json()}
        for one in scores
    ]
    body = [row.as_json() for row in rows] + told
    (folder / "overload.json").write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    (folder / "overload.svg").write_text(draw(scores, title), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one load for some seconds: does it work; no verdict")
    parser.add_argument("--shapes", nargs="*", help="only these: 2x 4x 8x burst")
    parser.add_argument("--policies", nargs="*", type=Policy, default=list(Policy), help="only these")
    parser.add_argument("--at-once", type=int, default=len(Policy), help="policies at once at most, on a busy machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backlog-limit", type=float, default=BACKLOG_LIMIT, help="of the policy edf-backlog-limit")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    asked = parser.parse_args()
    began = time.monotonic()
    shapes = [
        one for one in (SHORT if asked.short else (*STEADY, BURST)) if not asked.shapes or one.name in asked.shapes
    ]
    scores: list[Score] = []
    with Lab() as lab:
        for shape, policies in runs(shapes, asked.policies, asked.at_once):
            names = ", ".join(policies)
            print(
                f"[{time.monotonic() - began:6.1f} s] {shape.name} for {shape.lasts_s:g} s: {names}",
                file=sys.stderr,
                flush=True,
            )
            found = measure(lab, shape, policies, asked.seed, asked.backlog_limit)
            print("\n".join(list(lines(found))[1:]), file=sys.stderr, flush=True)
            scores += found
    rows = [] if asked.short else goals(scores)
    title = f"Overload: {SLOTS} slots, {CAPACITY_PER_S:.0f} jobs/s, every duration ÷ {FASTER:g}"
    write(scores, rows, asked.out, title)
    print(f"{title}; backlog limit {asked.backlog_limit:g}\n")
    print("\n".join(lines(scores)), end="\n\n")
    for row in rows:
        print(row.line())
    print(f"{time.monotonic() - began:.0f} s; written to {asked.out}/overload.json and overload.svg")
    return 0


if __name__ == "__main__":
    end_on_sigterm()
    sys.exit(main())
