"""The backlog limit at its very bounds: what a class may have waiting (contract §5), on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import worth

NOW_MS = 1_800_000_000_000


@pytest.fixture
def client(client: Any) -> Any:
    client.sadd("queue:pairs", "short:-", "long:-")
    return client


def frame(dispatch: str) -> str:
    """Give a call's frame: two slots, a margin of 400 ms, a reserve of 500 ms, and 100 and 200 ms a job."""
    return (
        f"local q = {{ p = '', now = {NOW_MS}, s = {{ backlog_limit = 0.5, dispatch = '{dispatch}', max_running = 2,"
        " prediction_min_completions = 20, expected_service_ms = 1, timings = { margin_ms = 400 },"
        " cost_classes = {}, classes = {"
        " short = { deadline_ms = 1400, share = 0.5, expected_service_ms = 100 },"
        " long = { deadline_ms = 5000, share = 0.5, expected_service_ms = 200 } } } } local load = {} "
    )


def full(client: Any, dispatch: str, waiting: int, in_ms: int, job_class: str = "short") -> bool:
    """Ask whether a class with so many waiting takes no more of a deadline that is so far away."""
    asked = f"B.full(q, load, '{job_class}', {waiting}, {NOW_MS + in_ms})"
    return worth(client, f"{frame(dispatch)} return {asked}") is True


def fill(client: Any, key: str, many: int, in_ms: int) -> None:
    client.delete(key)
    client.zadd(key, {f"{key}-{n}": NOW_MS + in_ms for n in range(many)})


def test_a_class_is_full_where_its_jobs_would_eat_into_the_reserve(client: Any) -> None:
    assert [full(client, "fifo", waiting, 1400) for waiting in (0, 5, 6)] == [False, False, True]
    assert [full(client, "edf", waiting, 5000, "long") for waiting in (0, 20, 21)] == [False, False, True]
    # Without anything waiting there is no wait, however little is left.
    assert [full(client, "fifo", waiting, 700) for waiting in (0, 1)] == [False, True]
    assert [full(client, "edf", waiting, 700, "long") for waiting in (0, 1)] == [False, True]


def test_by_deadline_the_class_that_goes_first_has_all_slots(client: Any) -> None:
    assert not full(client, "edf", 1000, 1400)
    # With a longer time than its class's it does not go first.
    assert [full(client, "edf", waiting, 1401) for waiting in (5, 1000)] == [False, True]


def test_of_two_classes_with_the_shortest_deadline_neither_goes_first(client: Any) -> None:
    for added in ("aaa", "zzz"):
        twin = f"q.s.classes.{added} = {{ deadline_ms = 1400, share = 0.5, expected_service_ms = 100 }}"
        asked = [
            f"B.full(q, {{}}, '{name}', {waiting}, {NOW_MS + 1400})" for name in ("short", added) for waiting in (5, 6)
        ]
        said = worth(client, f"{frame('edf')} {twin} return {{ {', '.join(f'{one} and 1 or 0' for one in asked)} }}")
        assert said == [0, 1, 0, 1]


@pytest.mark.parametrize("dispatch", ["fifo", "edf"])
def test_nothing_left_is_too_late_for_every_class(client: Any, dispatch: str) -> None:
    for job_class in ("short", "undeclared"):
        assert [full(client, dispatch, 0, in_ms, job_class) for in_ms in (399, 400, 401)] == [True, True, False]
    assert not full(client, dispatch, 1000, 401, "undeclared")


def test_by_age_no_class_counts_on_more_time_than_the_shortest_has(client: Any) -> None:
    assert [full(client, "fifo", waiting, 5000, "long") for waiting in (2, 3)] == [False, True]
    assert [full(client, "edf", waiting, 5000, "long") for waiting in (3, 20, 21)] == [False, False, True]


@pytest.mark.parametrize("index", ["queue:ready:short:-", "queue:delayed:short"])
def test_by_deadline_what_is_due_before_must_fit_into_all_slots(client: Any, index: str) -> None:
    for many, too_much in ((10, False), (11, True)):
        fill(client, index, many, 1400)
        assert full(client, "edf", 0, 1400) is too_much
        assert not full(client, "fifo", 0, 1400)
    fill(client, index, 11, 1401)
    assert not full(client, "edf", 0, 1400)


@pytest.mark.parametrize("index", ["queue:ready:long:-", "queue:delayed:long"])
def test_by_deadline_what_is_due_by_the_end_of_a_longer_class_must_fit_too(client: Any, index: str) -> None:
    for many, too_much in ((41, False), (42, True)):
        fill(client, index, many, 5000)
        assert full(client, "edf", 0, 1400) is too_much
    # A shorter class's end is no matter.
    client.delete(index)
    fill(client, "queue:ready:short:-", 11, 1400)
    assert not full(client, "edf", 0, 5000, "long")


@pytest.mark.parametrize("index", ["queue:ready:long:-", "queue:delayed:long"])
def test_by_deadline_what_came_all_at_once_must_fit_where_it_is_due(client: Any, index: str) -> None:
    """Between the ends of two classes it is looked for at 1.9, 2.4, 2.9 and 3.4 s: by then 25 jobs of 200 ms fit."""
    for many, too_much in ((25, False), (26, True)):
        fill(client, index, many, 3000)
        assert full(client, "edf", 0, 1400) is too_much
        assert not full(client, "fifo", 0, 1400)
    # It is due before the new job, and fits by then.
    assert not full(client, "edf", 0, 4000, "long")


def test_what_is_due_later_than_any_class_has_time_for_is_no_matter(client: Any) -> None:
    for in_ms, too_much in ((5000, True), (5001, False), (9000, False)):
        fill(client, "queue:ready:long:-", 1000, in_ms)
        assert full(client, "edf", 0, 1400) is too_much


@pytest.mark.parametrize(("many", "looks"), [(5, 1), (9, 2), (11, 3), (25, 5), (41, 9)])
def test_by_deadline_nothing_is_looked_at_beyond_where_all_of_it_fits(client: Any, many: int, looks: int) -> None:
    fill(client, "queue:ready:long:-", many, 5000)
    client.config_resetstat()
    assert not full(client, "edf", 0, 1400)
    # Two pairs; of the delayed there are two classes.
    assert client.info("commandstats")["cmdstat_zcount"]["calls"] == 4 * looks


def test_however_long_a_class_has_the_looks_are_few(client: Any) -> None:
    fill(client, "queue:ready:long:-", 500_000, 90_000_000)
    client.config_resetstat()
    asked = f"q.s.classes.long.deadline_ms = 100000000 return B.full(q, load, 'short', 0, {NOW_MS + 1400})"
    assert worth(client, f"{frame('edf')} {asked}") is False
    assert client.info("commandstats")["cmdstat_zcount"]["calls"] <= 4 * 25


def test_what_is_delayed_is_not_asked_for_where_nothing_is(client: Any) -> None:
    fill(client, "queue:ready:long:-", 5, 5000)
    client.config_resetstat()
    assert (
        worth(client, f"{frame('edf')} load.delayed = 0 return B.full(q, load, 'short', 0, {NOW_MS + 1400})") is False
    )
    assert client.info("commandstats")["cmdstat_zcount"]["calls"] == 2


def test_what_a_call_accepts_counts_for_its_next_job(client: Any) -> None:
    fill(client, "queue:ready:short:-", 9, 1400)
    ask = f"B.full(q, load, 'short', 0, {NOW_MS + 1400})"
    take = f"B.take(q, load, 'short', {NOW_MS + 1400})"
    later = f"B.take(q, load, 'short', {NOW_MS + 1401})"
    thrice = f"local first = {ask} {later} {take} local second = {ask} {take} return {{ first, second, {ask} }}"
    assert worth(client, f"{frame('edf')} {thrice}") == [False, False, True]
    # The same where nobody had asked before.
    body = f"{frame('edf')} {later} {take} local second = {ask} {take} return {{ second, {ask} }}"
    assert worth(client, body) == [False, True]
    assert worth(client, f"{frame('edf')} {take} {take} return {ask}") is True
    assert worth(client, f"{frame('edf')} {later} {later} return {ask}") is False


def test_what_is_due_is_counted_once_a_call(client: Any) -> None:
    ask = f"B.full(q, load, 'short', 0, {NOW_MS + 1400})"
    client.config_resetstat()
    worth(client, f"{frame('edf')} return {ask}")
    once = client.info("commandstats")["cmdstat_zcount"]["calls"]
    client.config_resetstat()
    worth(client, f"{frame('edf')} return {ask} or {ask} or {ask}")
    assert client.info("commandstats")["cmdstat_zcount"]["calls"] == once
