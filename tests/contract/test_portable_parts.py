"""What of a job and of a refusal travels in a snapshot, and how it is put back, each part by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import value_of, worth

NOW_MS = 1_800_000_000_000
FRAME = (
    f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, counted = {{}}, lifetimes = {{}}, woken = 0, s = {{"
    " max_pending = 10, dispatch = 'fifo', timings = { refusal_retention_ms = 1000 }, cost_classes = {},"
    " classes = { safe = { effects = 'keyed' }, unsafe = { effects = 'unsafe' } } } }"
)
DEADLINE, ELIGIBLE, READY_AT = NOW_MS + 900, NOW_MS - 30, NOW_MS + 70


def version(client: Any, **record: str) -> str | None:
    client.delete("job:x")
    client.hset("job:x", mapping=record or {"class": "safe"})
    found: str | None = value_of(client, "P.version({ p = '' }, 'x') or cjson.null")
    return found


def test_the_version_of_a_job_changes_with_whatever_changes_it(client: Any) -> None:
    assert version(client, state="ready") == "ready:1"
    assert version(client, state="delayed", rev="4", fence="9", intent_fence="9") == "delayed:4"
    assert version(client, state="running", rev="4", fence="9") == "running:9:"
    assert version(client, state="running", fence="9", intent_fence="9") == "running:9:9"
    assert version(client, state="running") == "running::"


def test_what_is_no_open_job_has_no_version(client: Any) -> None:
    assert [version(client, state=state) for state in ("refused", "succeeded", "failed", "expired")] == [None] * 4
    assert version(client, state="ready", canary="run") is None
    assert version(client, state="ready", canary="") == "ready:1"
    assert version(client) is None


def test_a_row_has_the_version_of_its_job(client: Any) -> None:
    client.hset("job:x", mapping={"state": "running", "class": "safe", "fence": "9", "intent_fence": "8"})
    client.hset("job:y", mapping={"state": "refused"})
    row = value_of(client, "P.row({ p = '' }, 'x')")
    assert (row["id"], row["version"], row["job"]["fence"]) == ("x", "running:9:8", "9")
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

    scores = [score(state, job_id) for state in (*containers, "succeeded") for job_id in ("x", "y")]
    assert scores == ["0", "none", "1", "none", "2", "none", "3", "none", "4", "none", "none", "none"]


def test_open_jobs_travel_and_neither_ends_nor_canaries(client: Any) -> None:
    def travels(state: str, canary: str = "") -> bool:
        return value_of(client, f"P.travels({{ job = {{ state = '{state}', canary = '{canary}' }} }}) == true") is True

    assert [travels(state) for state in ("ready", "running", "blocked")] == [True] * 3
    assert [travels(state) for state in ("succeeded", "failed", "expired")] == [False] * 3
    assert not travels("ready", "run")
    assert value_of(client, "P.travels(nil) == nil") is True


def test_only_a_refusal_has_a_decision_that_travels_alone(client: Any) -> None:
    client.hset("job:x", mapping={"state": "refused", "reason": "overloaded"})
    client.hset("job:y", mapping={"state": "ready"})
    assert value_of(client, "P.refusal({ p = '' }, 'x')")["reason"] == "overloaded"
    assert value_of(client, "{ P.refusal({ p = '' }, 'y') == nil, P.refusal({ p = '' }, 'z') == nil }") == [True, True]


def put_back(client: Any, state: str, job_class: str = "safe", *, suspect: bool = False, more: str = "") -> str:
    client.flushall()
    job = (
        f"{{ state = '{state}', class = '{job_class}', declared = '{job_class}', cost = '-', deadline = '{DEADLINE}',"
        f" admitted_at = '1', eligible = '{ELIGIBLE}', ready_at = '{READY_AT}', rev = '3', fence = '9',"
        f" worker = 'w' {more} }}"
    )
    row = f"{{ id = 'x', score = '77', payload = 'p', job = {job}, ledger = {{}}, decision = {{ fp = 'f' }} }}"
    answer: str = worth(client, f"{FRAME} return P.put_back(q, {row}, {str(suspect).lower()}, false)")
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
    assert put_back(client, "ready", more=f", fence = '{NOW_MS}500'") == "ready"
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
    row: str = "{ id = 'x', job = { state = 'ready', class = 'safe' } }"
    assert worth(client, f"{FRAME} return P.put_back(q, {row}, false, false)") == "kept"
    assert client.hgetall("job:x") == {"state": "succeeded"}
    dry = "{ id = 'y', job = { state = 'running', class = 'safe' } }"
    assert worth(client, f"{FRAME} return P.put_back(q, {dry}, false, true)") == "unknown"
    assert client.exists("job:y", "payload:y", "queue:unknown") == 0


def refusal(client: Any, retry_at: str, at: str, *, dry: bool = False, key: str = "x") -> Any:
    row = f"{{ key = '{key}', decision = {{ fp = 'f', reason = 'r', retry_at = '{retry_at}', at = '{at}' }} }}"
    return worth(client, f"{FRAME} return P.put_refusal_back(q, {row}, {str(dry).lower()})")


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
