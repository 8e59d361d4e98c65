"""What the gate goes by, at its very bounds: ages, slack, the provider's window, the predicted wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import worth

NOW_MS = 1_800_000_000_000
BUCKET = NOW_MS * 6 // 30_000


@pytest.fixture
def client(client: Any) -> Any:
    client.sadd("queue:pairs", "short:-", "long:-", "odd:-")
    return client


def frame(dispatch: str = "fifo", backlog_limit: float = 0) -> str:
    """Give a call's frame with settings."""
    return (
        f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, counted = {{}}, lifetimes = {{}}, woken = 0, s = {{"
        f" dispatch = '{dispatch}', backlog_limit = {backlog_limit}, max_running = 2, prediction_min_completions = 4,"
        " expected_service_ms = 7, cost_classes = {}, timings = { provider_window_ms = 30000, margin_ms = 400 },"
        " classes = { short = { deadline_ms = 1000, share = 0.5, expected_service_ms = 9 },"
        " long = { deadline_ms = 5000 } },"
        " thresholds = { recovered_age_p95_seconds = 15, recovered_slack_p10_seconds = 15, reject_age_p95_seconds = 20,"
        " reject_slack_p10_seconds = 5, drain_min_failed = 2, sample_min_calls = 20, sample_min_failed = 5,"
        " drain_provider_5xx_rate = 0.05, drain_provider_timeout_rate = 0.1 } } } local g = { window = '5' } "
    )


def ages(client: Any, dispatch: str = "fifo") -> Any:
    return worth(client, f"{frame(dispatch)} return F.age_ms(q, F.ruling_ages(q), 0.95)")


def test_an_age_is_that_of_the_nearest_rank_and_never_less_than_0(client: Any) -> None:
    assert ages(client) == 0
    client.zadd("queue:fifo:short:-", {str(n): NOW_MS - n for n in range(1, 21)})
    assert ages(client) == 19
    client.zadd("queue:fifo:short:-", {"21": NOW_MS - 21})
    assert ages(client) == 20
    client.delete("queue:fifo:short:-")
    client.zadd("queue:fifo:long:-", {"x": NOW_MS + 5})
    assert ages(client) == 0


def test_by_deadline_the_shortest_class_rules(client: Any) -> None:
    client.zadd("queue:fifo:short:-", {"a": NOW_MS - 1})
    client.zadd("queue:fifo:long:-", {"b": NOW_MS - 9})
    assert [ages(client, dispatch) for dispatch in ("fifo", "edf")] == [9, 1]
    # Of several that are as short, the first by name.
    for names in ("abcdefgh", "stuvwxyz", "hgfedcba"):
        client.delete(*[f"queue:fifo:{name}:-" for name in "abcdefghstuvwxyz"])
        client.sadd("queue:pairs", *[f"{name}:-" for name in names])
        for name in names:
            client.zadd(f"queue:fifo:{name}:-", {name: NOW_MS - ord(name)})
        same = " ".join(f"q.s.classes.{name} = {{ deadline_ms = 900 }}" for name in names)
        ruling = "return F.age_ms(q, F.ruling_ages(q), 0.95)"
        assert worth(client, f"{frame('edf')} {same} {ruling}") == ord(min(names))


def test_slack_is_that_of_all_that_is_unfinished(client: Any) -> None:
    slack = "F.slack_ms(q, F.deadlines(q), 0.1)"
    assert worth(client, f"{frame()} return {slack} == nil") is True
    for number, key in enumerate(("queue:ready:odd:-", "queue:delayed:long", "running:short")):
        client.zadd(key, {f"j{number}": NOW_MS + 30 - 10 * number})
        assert worth(client, f"{frame()} return {slack}") == 30 - 10 * number
    assert worth(client, f"{frame()} return {{ F.unfinished(q), F.backlog(q) }}") == [3, 0]


def test_a_class_has_its_own_figures_and_undeclared_ones_are_other(client: Any) -> None:
    def keys(part: str, job_class: str = "") -> list[str]:
        asked = f", '{job_class}'" if job_class else ""
        return sorted(worth(client, f"{frame()} return {part}(q{asked})"))

    assert keys("F.ages") == ["queue:fifo:long:-", "queue:fifo:odd:-", "queue:fifo:short:-"]
    assert keys("F.ages", "long") == ["queue:fifo:long:-"]
    assert keys("F.ages", "other") == ["queue:fifo:odd:-"]
    of_odd = {"queue:delayed:odd", "queue:ready:odd:-", "running:odd"}
    assert of_odd < set(keys("F.deadlines"))
    assert len(keys("F.deadlines")) == 9


def test_a_window_is_empty_without_one_bucket_of_calls_or_completions(client: Any) -> None:
    def is_empty() -> bool:
        return worth(client, f"{frame()} return F.window_is_empty(q, '5')") is True

    assert is_empty()
    for key in (f"provider:5:{BUCKET}", f"done:{BUCKET}", f"provider:5:{BUCKET - 5}", f"done:{BUCKET - 5}"):
        client.hset(key, "any", 1)
        assert not is_empty()
        client.delete(key)
    for key in (f"provider:6:{BUCKET}", f"provider:5:{BUCKET - 6}", f"done:{BUCKET + 1}"):
        client.hset(key, "any", 1)
    assert is_empty()


def call(client: Any, bucket: int, **counts: Any) -> None:
    client.hset(f"provider:5:{bucket}", mapping=counts)


def provider(client: Any) -> list[Any]:
    """Give the calls, errors and timeouts of the window, and whether something was written over."""
    seen = "local damaged = {} local c, e, t = F.provider(q, F.window(g), damaged)"
    found: list[Any] = worth(client, f"{frame()} {seen} return {{ c, e, t, damaged.provider == true }}")
    return found


def test_the_window_has_six_buckets_and_a_name(client: Any) -> None:
    for back in range(7):
        call(client, BUCKET - back, calls=10**back, **{"5xx": 1})
    assert provider(client) == [111_111, 6, 0, False]
    call(client, BUCKET + 1, calls=5)
    assert provider(client)[0] == 111_111
    assert worth(client, f"{frame()} return {{ F.window({{ window = '' }}), F.window(g) }}") == ["0", "5"]
    assert worth(client, f"{frame()} return {{ F.bucket(q), F.bucket(q, 5000), F.bucket(q, 4999) }}") == [BUCKET, 1, 0]


def test_what_was_written_over_a_bucket_is_0_and_said(client: Any) -> None:
    call(client, BUCKET, calls="x", timeout=0)
    assert provider(client) == [0, 0, 0, True]
    client.delete(f"provider:5:{BUCKET}")
    client.set(f"provider:5:{BUCKET - 1}", "x")
    assert provider(client) == [0, 0, 0, True]
    client.delete(f"provider:5:{BUCKET - 1}")
    call(client, BUCKET, calls=2, **{"5xx": 1, "timeout": 1})
    assert provider(client) == [2, 1, 1, False]
    call(client, BUCKET, calls=1)
    assert provider(client) == [1, 1, 1, True]
    without = "local c, e, t = F.provider(q, '5') return { c, e, t }"
    assert worth(client, f"{frame()} {without}") == [1, 1, 1]


def allow(client: Any, calls: int, errors: int, timeouts: int) -> bool:
    call(client, BUCKET, calls=calls, **{"5xx": errors, "timeout": timeouts})
    return worth(client, f"{frame()} return rates_allow(q, g)") is True


def test_rates_speak_from_enough_calls_or_failures_on(client: Any) -> None:
    assert [allow(client, 20, failed, 0) for failed in (0, 1, 2)] == [True, True, False]
    assert [allow(client, 20, 1, late) for late in (0, 1)] == [True, False]
    assert [allow(client, calls, 2, 0) for calls in (19, 20)] == [True, False]
    assert [allow(client, 5, failed, late) for failed, late in ((4, 0), (5, 0), (0, 4), (0, 5))] == [
        True,
        False,
        True,
        False,
    ]


def test_each_rate_has_its_bound(client: Any) -> None:
    assert [allow(client, calls, 5, 0) for calls in (101, 100)] == [True, False]
    assert [allow(client, calls, 0, 5) for calls in (51, 50)] == [True, False]
    assert not allow(client, 4, 3, 2), "more failures than calls"


def passes(client: Any, gate: str, age_ms: int | None, slack_ms: int | None) -> bool:
    client.delete("queue:fifo:short:-", "running:short")
    if age_ms is not None:
        client.zadd("queue:fifo:short:-", {"a": NOW_MS - age_ms})
    if slack_ms is not None:
        client.zadd("running:short", {"b": NOW_MS + slack_ms})
    return worth(client, f"{frame()} return F.{gate}(q, g)") is True


def test_the_run_s_gate_asks_for_less_age_and_more_slack_than_its_bounds(client: Any) -> None:
    assert [passes(client, "reopening_passes", age, None) for age in (14_999, 15_000)] == [True, False]
    assert [passes(client, "reopening_passes", None, slack) for slack in (15_000, 15_001)] == [False, True]
    assert passes(client, "reopening_passes", None, None)
    call(client, BUCKET, calls=5, timeout=5)
    assert not passes(client, "reopening_passes", None, None)


def test_a_ramp_goes_on_below_its_age_and_from_its_slack_on(client: Any) -> None:
    assert [passes(client, "ramp_passes", age, None) for age in (19_999, 20_000)] == [True, False]
    assert [passes(client, "ramp_passes", None, slack) for slack in (4_999, 5_000)] == [False, True]
    assert passes(client, "ramp_passes", None, None)
    call(client, BUCKET, calls=5, timeout=5)
    assert not passes(client, "ramp_passes", None, None)


def test_a_class_s_time_is_that_of_its_last_completions_once_there_are_enough(client: Any) -> None:
    def service(job_class: str) -> Any:
        return worth(client, f"{frame()} return F.service_ms(q, '{job_class}')")

    assert [service(name) for name in ("short", "long", "odd")] == [9, 7, 7]
    client.hset("service", mapping={"jobs:short": 3, "ms:short": 300, "jobs:odd": 4, "ms:odd": 600, "jobs:long": "x"})
    assert [service(name) for name in ("short", "long", "odd")] == [9, 7, 150]
    client.hset("service", mapping={"jobs:short": 4, "ms:short": "x"})
    assert service("short") == 0


def remembered(client: Any) -> list[str | None]:
    worth(client, f"{frame()} remember_service(q, 'short', 10) return 1")
    return list(client.hmget("service", "jobs:short", "ms:short"))


def test_older_completions_fade_once_there_are_many(client: Any) -> None:
    assert remembered(client) == ["1", "10"]
    assert remembered(client) == ["2", "20"]
    client.hset("service", mapping={"jobs:short": 14, "ms:short": 100})
    assert remembered(client) == ["15", "110"]
    assert remembered(client) == ["8", "60"]
    client.hset("service", mapping={"jobs:short": "x", "ms:short": "y"})
    assert remembered(client) == ["1", "10"]


def test_a_wait_is_predicted_from_enough_completions_on(client: Any) -> None:
    waits = "predicted_wait_ms(q, 0, 0), predicted_wait_ms(q, 1, 3) == nil, predicted_wait_ms(q, 2, 4)"
    assert worth(client, f"{frame()} return {{ {waits} }}") == [0, True, 15_000]


def test_a_limited_backlog_has_a_wait_a_class(client: Any) -> None:
    asked = "return { class_wait_ms(q, 'short', 3, 77) or 'none', class_wait_ms(q, 'odd', 3, 77) or 'none' }"
    assert worth(client, f"{frame()} {asked}") == [77, 77]
    assert worth(client, f"{frame(backlog_limit=0.5)} {asked}") == [27, "none"]


def counted(client: Any, body: str, backlog_limit: float = 0) -> dict[str, dict[str, str]]:
    """Run something on an empty server, and give every hash that it left."""
    client.flushall()
    worth(client, f"{frame(backlog_limit=backlog_limit)} {body} write_counts(q) return 1")
    return {key: client.hgetall(key) for key in client.scan_iter()}


def test_a_call_is_counted_by_its_kind_and_in_its_window(client: Any) -> None:
    bucket = f"provider:5:{BUCKET}"
    assert counted(client, "F.count_call(q, '5', 'ok')") == {"counters": {"calls:ok": "1"}, bucket: {"calls": "1"}}
    assert 59_000 < client.pttl(bucket) <= 60_000
    for kind in ("5xx", "timeout"):
        assert counted(client, f"F.count_call(q, '5', '{kind}')")[bucket] == {"calls": "1", kind: "1"}
    assert counted(client, "F.count_call(q, '5', 'cancelled')") == {"counters": {"calls:cancelled": "1"}}


def test_a_completion_is_counted_and_a_limited_backlog_remembers_its_time(client: Any) -> None:
    bucket = {f"done:{BUCKET}": {"jobs": "1", "service_ms": "5"}}
    assert counted(client, "F.count_done(q, 'short', 5, 8)") == bucket
    service = {"service": {"jobs:short": "1", "ms:short": "8"}}
    assert counted(client, "F.count_done(q, 'short', 5, 8)", 0.5) == bucket | service


def test_completions_are_those_of_the_window(client: Any) -> None:
    for back in range(7):
        client.hset(f"done:{BUCKET - back}", "jobs", 10**back)
    assert worth(client, f"{frame()} return F.completions(q)") == 111_111
