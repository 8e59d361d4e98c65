"""The reading commands of a snapshot and of `doctor`, each by itself on a real server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.function_values import value_of, worth
from tests.queues import OpenQueue

NOW_MS = 1_800_000_000_000
FRAME = (
    f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, seen = 0, v = {{}}, a = {{}}, s = {{"
    " classes = {}, cost_classes = {}, timings = { refusal_retention_ms = 1000, overloaded_retry_ms = 30,"
    " class_limit_retry_ms = 15, closed_retry_ms = 40 } } }"
)


@pytest.fixture
def client(client: Any) -> Any:
    client.sadd("queue:pairs", "c:-")
    return client


def after(client: Any, member: str, score: str, limit: int = 9) -> list[str]:
    """Give the members that a range has which goes on from there."""
    flat = value_of(client, f"range_after('z', {{ member = '{member}', score = '{score}' }}, {limit})")
    return flat[::2] if flat else []


def test_a_range_goes_on_behind_its_last_member_wherever_that_went(client: Any) -> None:
    client.zadd("z", {"a": 1, "b": 2, "c": 2, "d": 3, "e": 4})
    assert value_of(client, "range_after('z', nil, 2)") == ["a", "1", "b", "2"]
    assert after(client, "b", "2") == ["c", "d", "e"]
    assert after(client, "b", "2", 1) == ["c"]
    client.zadd("z", {"b": 9})
    assert after(client, "b", "2") == ["c", "d", "e", "b"]
    client.zrem("z", "b")
    assert after(client, "b", "2") == ["c", "d", "e"]
    assert after(client, "e", "4") == []


def job(client: Any, job_id: str, score: int, *, size: int = 1, **more: str) -> None:
    client.hset(f"job:{job_id}", mapping={"state": "ready", "class": "c", "admitted_at": "1", **more})
    client.set(f"payload:{job_id}", "x" * size)
    client.zadd("queue:fifo:c:-", {job_id: score})


def ids(client: Any, member: str = "", score: str = "") -> list[str]:
    """Give a call's answer."""
    q_v = f"q.v = {{ '', '0', 'queue:fifo:c:-', '{member}', '{score}' }}"
    answer = worth(client, f"{FRAME} {q_v} return commands.snapshot_ids(q)")
    return list(answer)


def test_ids_are_given_with_scores_whatever_they_name_and_go_on_behind_the_last(client: Any) -> None:
    job(client, "a", 1)
    client.zadd("queue:fifo:c:-", {"gone": 4})
    assert ids(client) == ["a", "1", "gone", "4"]
    assert ids(client, "a", "1") == ["gone", "4"]
    assert ids(client, "gone", "4") == []


def test_a_call_gives_500_ids(client: Any) -> None:
    client.zadd("queue:fifo:c:-", {f"j{number:03}": 7 for number in range(501)})
    first = ids(client)
    assert (len(first), ids(client, *first[-2:])) == (1000, ["j500", "7"])


def test_a_container_that_no_snapshot_has_is_an_error(client: Any) -> None:
    error = worth(client, f"{FRAME} q.v[3] = 'queue:canary' local _, e = pcall(commands.snapshot_ids, q) return e")
    assert error.endswith("no container queue:canary")


def test_an_empty_container_ends_at_once(client: Any) -> None:
    assert ids(client) == []


def refusals(client: Any, horizon: int, after: str = "nil") -> Any:
    return worth(
        client, f"{FRAME} q.a = {{ horizon = {horizon}, after = {after} }} return commands.snapshot_refusals(q)"
    )


def test_refusals_are_read_up_to_the_horizon_and_no_record_but_theirs(client: Any) -> None:
    for key, lapses, state in (("a", 10, "refused"), ("b", 20, "ready"), ("c", 30, "refused"), ("d", 31, "refused")):
        client.hset(f"job:{key}", mapping={"state": state, "reason": key})
        client.zadd("queue:refusals", {key: lapses})
    read = refusals(client, 30)
    assert [row["key"] for row in read["rows"]] == ["a", "c"]
    assert "after" not in read
    read = refusals(client, 31)
    assert [row["decision"]["reason"] for row in read["rows"]] == ["a", "c", "d"]
    assert read["after"] == {"member": "d", "score": "31"}
    assert [row["key"] for row in refusals(client, 31, "{ member = 'a', score = '10' }")["rows"]] == ["c", "d"]


def test_records_are_given_of_whatever_is_there_with_a_score_while_open(client: Any) -> None:
    job(client, "a", 7)
    client.hset("job:b", mapping={"state": "succeeded", "class": "c", "admitted_at": "1"})
    found = worth(client, f"{FRAME} q.a.ids = {{ 'gone', 'a', 'b' }} return commands.records(q)")["jobs"]
    assert [(one["id"], one.get("score")) for one in found] == [("a", "7"), ("b", None)]


@pytest.mark.parametrize(("size", "looked"), [(131_072, 2), (131_071, 3)])
def test_records_end_with_the_payload_that_fills_a_call(client: Any, size: int, looked: int) -> None:
    for number in range(3):
        job(client, f"j{number}", number, size=size)
    found = worth(client, f"{FRAME} q.a.ids = {{ 'j0', 'j1', 'j2' }} return commands.records(q)")
    assert (found["looked"], len(found["jobs"])) == (looked, looked)


def head(client: Any, settings: str = "q.s") -> Any:
    return worth(client, f"{FRAME} q.s = {settings} return commands.snapshot(q)")


def test_the_head_knows_when_every_refusal_of_now_has_lapsed(client: Any) -> None:
    job(client, "a", 1)
    assert head(client)["horizon"] == NOW_MS
    client.zadd("queue:refusals", {"k1": NOW_MS + 9, "k2": NOW_MS + 70, "k3": NOW_MS - 5})
    assert head(client)["horizon"] == NOW_MS + 70
    assert head(client)["containers"] == {
        "queue:fifo:c:-": 1, "queue:delayed": 0, "queue:leases": 0, "queue:unknown": 0, "queue:blocked": 0,
    }  # fmt: skip
    bare = head(client, "nil")
    assert (bare["horizon"] - 70, bare["digest"], bare["contract"], bare["pin"]) == (NOW_MS, "", "", "uninitialised")


def container(client: Any, *fields: str | None) -> str | None:
    """Name the container for a record's state, class, cost and canary, in this order."""
    words = ", ".join("false" if one is None else f"'{one}'" for one in fields)
    found: str | None = value_of(client, f"container_of({{ {words} }}) or cjson.null")
    return found


def test_an_open_record_belongs_into_the_container_of_its_state(client: Any) -> None:
    assert container(client, "ready", "c", "gpu", None) == "queue:fifo:c:gpu"
    assert container(client, "ready", "c", None, "") == "queue:fifo:c:-"
    assert container(client, "ready", None, None, None) == "queue:fifo::-"
    assert container(client, "ready", "c", None, "run") == "queue:canary"
    assert [container(client, state, "c", None, None) for state in ("delayed", "unknown", "blocked")] == [
        "queue:delayed", "queue:unknown", "queue:blocked",
    ]  # fmt: skip
    assert [
        container(client, state, "c", None, None) for state in ("running", "succeeded", "refused", "odd", None)
    ] == [None] * 5


def test_the_keys_of_other_queues_are_not_even_asked_for_their_type(queue: OpenQueue) -> None:
    for number in range(50):
        queue.client.set(f"{{mail}}:job:{number}", "x")
    queue.client.config_resetstat()
    queue.store.strange_keys()
    own = len([key for key in queue.client.scan_iter() if not key.startswith("{")])
    assert queue.client.info("commandstats")["cmdstat_type"]["calls"] == own


def test_keys_of_the_old_layout_and_of_other_types_are_named(client: Any) -> None:
    client.zadd("queue:enqueued", {"x": 1})
    client.set("{mail}:queue:enqueued", "x")
    client.set("kill", "x")
    client.hset("run:1", "a", "b")
    types = "types = { kill = 'hash' }, families = { { 'run:', '', 'hash' } }"
    found = worth(client, f"{FRAME} q.a = {{ cursor = '0', {types} }} return commands.wrong_types(q)")
    assert (found["old"], found["wrong"], found["lost"]) == (["queue:enqueued"], [["kill", "string", "hash"]], {})


def test_a_name_with_signs_of_a_pattern_means_itself(client: Any) -> None:
    assert value_of(client, "quoted('{a*b?c[d]^e-f\\\\g}')") == "{a\\*b\\?c\\[d\\]\\^e\\-f\\\\g}"


def test_a_name_has_the_type_of_its_name_or_of_its_family(client: Any) -> None:
    families = "{ { 'run:', ':journal', 'stream' }, { 'run:', '', 'hash' } }"
    types = [
        value_of(client, f"wanted_type('{name}', {{ kill = 'string' }}, {families}) or 'none'")
        for name in ("kill", "run:1", "run:1:journal", "runs", "x:journal")
    ]
    assert types == ["string", "hash", "stream", "none", "none"]


def test_old_keys_are_known_by_their_names(client: Any) -> None:
    client.hset("idem:k", "fp", "f")
    client.hset("idem:theirs", "other", "f")

    def old(name: str, kind: str = "zset") -> bool:
        return value_of(client, f"of_old_layout('{name}', '{name}', '{kind}')") is True

    assert [old(name) for name in ("queue:enqueued", "queue:deadlines:lint-fix", "queue:enqueuedly", "idem:k")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [old(name, "hash") for name in ("idem:k", "idem:theirs", "item:k")] == [True, False, False]


def test_settings_that_keep_the_list_as_it_is_leave_its_order(queue: OpenQueue) -> None:
    first = queue.accepted()
    # Two of one millisecond would go by their ids.
    time.sleep(0.002)
    second = queue.accepted()
    queue.client.delete("queue:pending")
    queue.client.rpush("queue:pending", second, first)
    for most, listed in ((21, [second, first]), (20001, []), (22, [first, second])):
        changed = queue.contract.model_copy(update={"max_pending": most})
        queue.store.apply_settings(changed.for_redis(), changed.digest(), "ada", "a test")
        assert queue.client.lrange("queue:pending", 0, -1) == listed
    log = len(queue.store.gate_log())
    assert queue.store.apply_settings(changed.for_redis(), changed.digest(), "ada", "a test") == "unchanged"
    assert len(queue.store.gate_log()) == log
