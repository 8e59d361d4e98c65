"""What of a job and of a refusal travels in a snapshot, and how it is put back, each part by itself."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.snapshot_records import container_of, version_in
from tests.function_values import value_of, worth

NOW_MS = 1_800_000_000_000
FRAME = (
    f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, counted = {{}}, lifetimes = {{}}, woken = 0, s = {{"
    " max_pending = 10, dispatch = 'fifo', timings = { refusal_retention_ms = 1000 }, cost_classes = {},"
    " classes = { safe = { effects = 'keyed' }, unsafe = { effects = 'unsafe' } } } }"
)
DEADLINE, ELIGIBLE, READY_AT = NOW_MS + 900, NOW_MS - 30, NOW_MS + 70


@pytest.mark.parametrize(
    ("record", "version"),
    [
        ({"state": "ready"}, "ready:1"),
        ({"state": "delayed", "rev": "4", "fence": "9", "intent_fence": "9"}, "delayed:4"),
        ({"state": "running", "rev": "4", "fence": "9"}, "running:9:"),
        ({"state": "running", "fence": "9", "intent_fence": "8"}, "running:9:8"),
        ({"state": "ready", "canary": ""}, "ready:1"),
    ],
)
def test_the_version_of_a_job_changes_with_whatever_changes_it(record: dict[str, str], version: str) -> None:
    assert version_in(record) == version


def test_what_is_no_open_job_has_no_version(client: Any) -> None:
    assert [version_in({"state": state}) for state in ("refused", "succeeded", "failed", "expired")] == [""] * 4
    assert [version_in(record) for record in ({"state": "ready", "canary": "run"}, {"class": "safe"})] == [""] * 2
    client.hset("job:y", mapping={"state": "refused"})
    assert value_of(client, "{ P.row({ p = '' }, 'y') == nil, P.row({ p = '' }, 'gone') == nil }") == [True, True]


def test_the_score_of_a_job_is_that_in_the_container_of_its_state(client: Any) -> None:
    containers = {
        "ready": "queue:fifo:safe:-", "delayed": "queue:delayed", "running": "queue:leases", "unknown": "queue:unknown",
        "blocked": "queue:blocked",
    }  # fmt: skip
    for place, name in enumerate(containers.values()):
        client.zadd(name, {"x": place})

    def score(state: str, job_id: str) -> Any:
        row = f"{{ id = '{job_id}', job = {{ state = '{state}', class = 'safe', cost = '-' }} }}"
        return value_of(client, f"P.score({{ p = '' }}, {row}) or 'none'")

    record = {"class": "safe"}
    assert [container_of({**record, "state": state}) for state in (*containers, "failed")] == [
        *containers.values(),
        None,
    ]
    scores = [score(state, job_id) for state in (*containers, "succeeded") for job_id in ("x", "y")]
    assert scores == ["0", "none", "1", "none", "2", "none", "3", "none", "4", "none", "none", "none"]


def test_only_a_refusal_has_a_decision_that_travels_alone(client: Any) -> None:
    client.hset("job:x", mapping={"state": "refused", "reason": "overloaded"})
    client.hset("job:y", mapping={"state": "ready"})
    assert value_of(client, "P.refusal({ p = '' }, 'x')")["reason"] == "overloaded"
    assert value_of(client, "{ P.refusal({ p = '' }, 'y') == nil, P.refusal({ p = '' }, 'z') == nil }") == [True, True]


def put_back(client: Any, state: str, job_class: str = "safe", *, suspect: bool = False, fence: str = "9") -> str:
    client.flushall()
    fields = {"admitted_at": "1", "fp": "f", "eligible": str(ELIGIBLE), "ready_at": str(READY_AT)}
    place = READY_AT if state == "delayed" else ELIGIBLE
    words = ["x", "p", job_class, "-", state, str(DEADLINE), str(place), "77", fence, "3", "8"]
    return back(client, [*words, *(word for field in fields.items() for word in field)], suspect=suspect)


READY_WORDS = "'safe', '-', 'ready', '5', '1', '1', '0', '1', '0'"


def back(client: Any, words: list[str], *, suspect: bool = False, dry: bool = False) -> str:
    v = ", ".join(f"'{word}'" for word in words)
    call = f"P.put_back(q, v, 2, there, {str(suspect).lower()}, {str(dry).lower()})"
    payloads = "" if dry else "P.put_payloads_back(q, v, { 1 }, there)"
    frame = f"{FRAME} local v, there = {{ 'job', {v} }}, P.there(q, {{ '{words[0]}' }})"
    answer: str = worth(client, f"{frame} P.begin(q) {payloads} return {call}")
    return answer


def containers(client: Any) -> dict[str, float]:
    """Give each sorted set that holds the job, with its score."""
    keys = [key for key in client.keys("*") if client.type(key) == "zset"]
    return {key: client.zscore(key, "x") for key in keys}


def test_a_job_comes_back_where_it_was_under_a_new_fence(client: Any) -> None:
    assert put_back(client, "ready") == "ready"
    assert containers(client) == {"queue:fifo:safe:-": ELIGIBLE, "queue:ready:safe:-": DEADLINE}
    assert client.hgetall("job:x") == {
        "state": "ready", "class": "safe", "deadline": str(DEADLINE), "admitted_at": "1", "eligible": str(ELIGIBLE),
        "ready_at": str(READY_AT), "rev": "4", "fence": f"{NOW_MS}000", "fp": "f", "restored_fence": f"{NOW_MS}000",
        "restored_state": "ready", "restored_at": str(NOW_MS),
    }  # fmt: skip
    assert (client.get("payload:x"), client.smembers("queue:pairs")) == ("p", {"safe:-"})
    assert put_back(client, "delayed") == "delayed"
    assert containers(client) == {"queue:delayed": READY_AT, "queue:delayed:safe": DEADLINE}
    assert put_back(client, "ready", fence=f"{NOW_MS}500") == "ready"
    assert client.hget("job:x", "fence") == f"{NOW_MS}501"


def test_what_was_unknown_or_blocked_keeps_since_when(client: Any) -> None:
    for state in ("unknown", "blocked"):
        assert put_back(client, state) == state
        assert containers(client) == {f"queue:{state}": 77, f"queue:{state}:safe": 77}
        assert client.hget("job:x", "cause") is None


def test_nobody_knows_what_became_of_one_that_ran(client: Any) -> None:
    assert put_back(client, "running") == "unknown"
    assert containers(client) == {"queue:unknown": NOW_MS, "queue:unknown:safe": NOW_MS}
    assert client.hmget("job:x", "cause", "restored_state") == ["restored", "running"]


@pytest.mark.parametrize("state", ["ready", "delayed", "blocked"])
@pytest.mark.parametrize("job_class", ["safe", "unsafe", "undeclared"])
@pytest.mark.parametrize("suspect", [True, False])
def test_only_a_pending_unsafe_job_is_suspect(client: Any, state: str, job_class: str, suspect: bool) -> None:
    doubtful = suspect and job_class != "safe" and state != "blocked"
    assert put_back(client, state, job_class, suspect=suspect) == ("unknown" if doubtful else state)


def test_what_is_there_stays(client: Any) -> None:
    client.hset("job:x", "state", "succeeded")
    words = ["x", "p", "safe", "-", "ready", "1", "1", "1", "0", "1", "0"]
    assert back(client, words) == "kept"
    assert client.hgetall("job:x") == {"state": "succeeded"}
    assert back(client, ["y", *words[1:4], "running", *words[5:]], dry=True) == "unknown"
    assert client.exists("job:y", "payload:y", "queue:unknown") == 0


def test_an_id_that_comes_twice_in_one_call_comes_back_once(client: Any) -> None:
    first, second = (f"'job', 'x', '{payload}', {READY_WORDS}" for payload in ("first", "second"))
    frame = f"{FRAME} local v, there = {{ {first}, {second} }}, P.there(q, {{ 'x', 'x' }}) P.begin(q)"
    calls = "P.put_back(q, v, 2, there, false, false), P.put_back(q, v, 14, there, false, false)"
    said = worth(client, f"{frame} P.put_payloads_back(q, v, {{ 1, 13 }}, there) return {{ {calls} }}")
    assert said == ["ready", "kept"]
    assert client.get("payload:x") == "first"


def test_what_stands_under_an_id_is_told_whatever_it_is(client: Any) -> None:
    client.hset("job:a", "state", "refused")
    client.set("job:b", "no hash")
    client.hset("job:c", "state", "ready")
    assert worth(client, f"{FRAME} return P.there(q, {{ 'a', 'b', 'c', 'd' }})") == {
        "a": "refused", "b": "kept", "c": "kept",
    }  # fmt: skip
    assert worth(client, f"{FRAME} return next(P.there(q, {{}})) or next(P.there(q, {{ 'd' }})) or 'none'") == "none"


def refusal(client: Any, retry_at: str, at: str, *, dry: bool = False, key: str = "x") -> Any:
    v = f"{{ '{key}', 'f', 'r', '{retry_at}', '{at}', '' }}"
    return worth(client, f"{FRAME} return P.put_refusal_back(q, {v}, 1, P.there(q, {{ '{key}' }}), {str(dry).lower()})")


def test_a_refusal_comes_back_for_what_is_left_of_it(client: Any) -> None:
    assert refusal(client, str(NOW_MS + 500), str(NOW_MS - 2000), dry=True) == "refusal"
    assert client.exists("job:x", "queue:refusals") == 0
    assert refusal(client, str(NOW_MS + 500), str(NOW_MS - 2000)) == "refusal"
    assert client.zscore("queue:refusals", "x") == NOW_MS + 1500
    assert 500 < client.pttl("job:x") <= 1500
    record = {
        "state": "refused",
        "fp": "f",
        "reason": "r",
        "retry_at": str(NOW_MS + 500),
        "decided_at": str(NOW_MS - 2000),
    }
    assert client.hgetall("job:x") == record
    assert refusal(client, "0", str(NOW_MS - 10)) == "kept"


def test_a_refusal_has_lapsed_at_the_very_end_of_its_time(client: Any) -> None:
    assert refusal(client, "0", str(NOW_MS - 1000)) == "lapsed"
    assert refusal(client, str(NOW_MS - 1000), "0") == "lapsed"
    assert refusal(client, "", "") == "lapsed"
    assert client.exists("job:x") == 0
    assert refusal(client, "0", str(NOW_MS - 999)) == "refusal"
    assert refusal(client, str(NOW_MS - 999), "", key="y") == "refusal"
