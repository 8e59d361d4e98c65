"""What the functions do with one job's record: how it reads, how it is moved and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.function_values import value_of, worth
from tests.job_frame import DAY_MS, NOW_MS, PAIRS, frame


@pytest.fixture
def client(client: Any) -> Any:
    client.sadd("queue:pairs", *PAIRS)
    return client


def test_a_record_reads_as_numbers_whatever_it_leaves_out(client: Any) -> None:
    client.hset("job:x", mapping={"state": "ready", "class": "known", "admitted_at": "7", "canary": ""})
    full = {"cost": "c", "deadline": "1", "attempt": "2", "retries": "3", "eligible": "4", "fence": "5", "losses": "6"}
    client.hset("job:y", mapping={"state": "ready", "class": "known", "rev": "8", "canary": "run", **full})
    client.hset("job:z", mapping={"state": "ready", "class": "known"})
    client.hset("job:refused", mapping={"state": "refused", "class": "known"})
    client.hset("job:classless", "state", "ready")
    client.hset("job:stateless", "class", "known")
    x, y, z = (value_of(client, f"J.read({{ p = '' }}, '{name}')") for name in "xyz")
    zeroes = dict.fromkeys(("deadline", "attempt", "retries", "fence", "losses"), 0)
    base = {"state": "ready", "class": "known"}
    assert x == {**base, "id": "x", "cost": "-", "admitted_at": "7", "eligible": 7, "rev": 1, **zeroes}
    assert z == {**base, "id": "z", "cost": "-", "eligible": 0, "rev": 1, **zeroes}
    assert y == {
        **base,
        "id": "y",
        **{k: v if k == "cost" else int(v) for k, v in full.items()},
        "rev": 8,
        "canary": "run",
    }
    none = ("refused", "gone", "classless", "stateless")
    read = ", ".join(f"J.read({{ p = '' }}, '{name}') == nil" for name in none)
    assert value_of(client, f"{{ {read} }}") == [True] * len(none)


FULL: dict[str, str] = {
    "state": "unknown", "class": "other", "declared": "odd", "cost": "browser", "rev": "4", "attempt": "2",
    "retries": "1", "losses": "1", "fence": "9", "canary": "run", "worker": "w", "deadline": "5", "admitted_at": "1",
    "eligible": "2", "fp": "f", "intent": "3", "intent_fence": "9", "intent_worker": "w", "intent_attempt": "2",
    "confirmed": "4",
    "reference": "r",
}  # fmt: skip
SMALL = {"state": "ready", "class": "known", "deadline": "5", "admitted_at": "1", "fp": "f"}


def test_a_job_is_shown_with_nothing_left_out(client: Any) -> None:
    client.hset("job:x", mapping=SMALL)
    shown = worth(client, "local s = J.shown({ p = '' }, 'x') s.ledger = next(s.ledger) or 'nothing' return s")
    first = {
        "cost": "-",
        "rev": "1",
        "attempt": "0",
        "retries": "0",
        "losses": "0",
        "fence": "0",
        "canary": "",
        "worker": "",
    }
    job = {
        "state": "ready",
        "class": "known",
        "deadline": "5",
        "admitted_at": "1",
        "eligible": "1",
        "declared": "known",
    }
    decision = {"job_id": "x", "fp": "f", "accepted": "1", "reason": "", "retry_at": "0", "at": "1"}
    assert shown == {"job": {**job, **first, "key": "x"}, "payload": "", "ledger": "nothing", "decision": decision}
    client.set("payload:x", "{}")
    client.hset("job:x", mapping=FULL)
    shown = value_of(client, "J.shown({ p = '' }, 'x')")
    assert (shown["payload"], shown["job"]["declared"], shown["job"]["eligible"]) == ("{}", "odd", "2")
    assert shown["ledger"] == {
        "intent": "3", "fence": "9", "worker": "w", "attempt": "2", "confirmed": "4", "reference": "r",
    }  # fmt: skip


def test_a_refusal_is_shown_as_a_decision_alone(client: Any) -> None:
    record = {"state": "refused", "fp": "f", "reason": "overloaded", "retry_at": "8", "decided_at": "6"}
    client.hset("job:x", mapping=record)
    client.hset("job:y", mapping={"state": "refused"})
    refusals = value_of(client, "{ J.shown({ p = '' }, 'x'), J.shown({ p = '' }, 'y') }")
    x = {"job_id": "x", "fp": "f", "accepted": "0", "reason": "overloaded", "retry_at": "8", "at": "6"}
    y = {"job_id": "y", "fp": "", "accepted": "0", "reason": "", "retry_at": "0", "at": "0"}
    assert refusals == [{"decision": x}, {"decision": y}]
    assert value_of(client, "J.shown({ p = '' }, 'gone') == nil") is True


def test_a_move_that_no_job_makes_is_an_error_and_changes_nothing(client: Any) -> None:
    for state, other in (("ready", "unknown"), ("succeeded", "ready"), ("delayed", "running")):
        error = worth(client, f"{frame()} local _, e = pcall(J.move, q, job('{state}'), '{other}', {{}}) return e")
        assert error.endswith(f"job x cannot move from {state} to {other}")
    assert client.exists("job:x") == 0


def moved(client: Any, state: str, other: str, more: str = "{}") -> dict[str, str]:
    """Move a job, and give its record."""
    worth(client, f"{frame()} J.move(q, job('{state}', {more}), '{other}', {{ cause = 'c' }}) write_counts(q) return 1")
    record: dict[str, str] = client.hgetall("job:x")
    client.delete("job:x")
    return record


def test_a_move_writes_its_fields_and_what_was_to_be_written_with_it(client: Any) -> None:
    assert moved(client, "running", "unknown") == {"state": "unknown", "rev": "2", "cause": "c"}
    assert client.exists("counters") == 0
    more = "{ also = { losses = 1 }, settled_in = function(state) return 'in ' .. state end }"
    both = {"state": "succeeded", "rev": "2", "cause": "c", "losses": "1", "settled": "in succeeded"}
    assert moved(client, "unknown", "succeeded", more) == both
    assert client.hgetall("counters") == {"unknown_left": "1"}


def failures(client: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for key in client.keys("failed:*") for line in client.lrange(key, 0, -1)]


def finished(client: Any, state: str, cause: str = "nil", more: str = "{}") -> dict[str, str]:
    """End a running job, and give what was counted of its class."""
    client.delete("counters", "counters:known", "job:x", *client.keys("failed:*"))
    worth(client, f"{frame()} J.finish(q, job('running', {more}), '{state}', {cause}) write_counts(q) return 1")
    counted: dict[str, str] = client.hgetall("counters:known")
    return counted


def test_every_end_is_counted_by_class_and_has_its_line_unless_it_succeeded(client: Any) -> None:
    assert finished(client, "expired") == {"expired": "1"}
    assert client.hgetall("counters") == {"expired": "1"}
    assert [(line["reason"], line["cause"]) for line in failures(client)] == [("expired", "deadline")]
    assert finished(client, "expired", "'drain'") == {"expired": "1"}
    assert [line["cause"] for line in failures(client)] == ["drain"]
    assert finished(client, "failed") == {"failed": "1", "missed": "1"}
    assert [(line["reason"], line["cause"]) for line in failures(client)] == [("failed", "running")]
    assert finished(client, "failed", "'e'") == {"failed": "1", "missed": "1"}
    assert [line["cause"] for line in failures(client)] == ["e"]
    assert client.hget("job:x", "cause") == "e"


def test_a_deadline_is_met_up_to_its_very_instant(client: Any) -> None:
    assert finished(client, "succeeded", more=f"{{ deadline = {NOW_MS} }}") == {"succeeded": "1", "met": "1"}
    assert failures(client) == []
    assert client.hget("job:x", "cause") == ""
    assert finished(client, "succeeded", more=f"{{ deadline = {NOW_MS - 1} }}") == {"succeeded": "1", "missed": "1"}
    assert client.hgetall("counters") == {"missed": "1"}


def test_a_canary_ends_without_a_count_or_a_line(client: Any) -> None:
    assert finished(client, "failed", more="{ canary = 'run' }") == {}
    assert (client.exists("counters"), failures(client)) == (0, [])
    assert 0 < client.pttl("job:x") <= 6000


def test_a_canary_that_never_ran_ends_where_its_record_is(client: Any) -> None:
    client.hset("job:x", mapping={"state": "ready", "class": "known", "canary": "run"})
    worth(
        client, f"{frame()} J.finish_record(q, 'x', 'expired', 'c') J.finish_record(q, 'gone', 'expired', 'c') return 1"
    )
    assert (client.hget("job:x", "state"), client.exists("job:gone")) == ("expired", 0)
    assert client.pttl("job:x") > 0


@pytest.mark.parametrize(("kept_ms", "wanted"), [(5000, 6000), (9000, 9000)])
def test_a_final_job_is_kept_at_least_twice_the_longest_deadline(client: Any, kept_ms: int, wanted: int) -> None:
    client.hset("job:x", "state", "succeeded")
    client.set("payload:x", "{}")
    worth(client, f"{frame(final_ms=kept_ms)} J.retain(q, job('succeeded')) return 1")
    assert all(wanted - 1000 < client.pttl(key) <= wanted for key in ("job:x", "payload:x"))


def left_of(client: Any, kept_ms: int, *lines: str) -> list[str]:
    """Give what is left of a day's list after another failure was recorded."""
    client.delete("failed:day")
    client.rpush("failed:day", *lines)
    worth(client, f"{frame(failed_ms=kept_ms)} drop_lapsed_failures(q, 'failed:day') return 1")
    left: list[str] = client.lrange("failed:day", 0, -1)
    return left


def test_a_day_s_list_goes_at_its_head_twice_as_fast_as_it_grows(client: Any) -> None:
    old, edge = (json.dumps({"at_ms": NOW_MS - kept}) for kept in (1001, 1000))
    assert left_of(client, 1000, old, old, old) == [old]
    assert left_of(client, 1000, old, edge, old) == [edge, old]
    assert left_of(client, 1000, old) == []
    assert left_of(client, 1000, "no JSON", "5", edge) == [edge]
    assert left_of(client, 1000, '{"at_ms": "x"}', "[]", edge) == [edge]
    assert left_of(client, DAY_MS, "no JSON") == ["no JSON"]
    assert left_of(client, DAY_MS - 1, "no JSON") == []


def again(client: Any, call: str, more: str = "{}") -> tuple[str, dict[str, str]]:
    client.delete("job:x")
    state = worth(client, f"{frame()} local r = J.again(q, job('running', {more}), {call}) return r")
    return state, client.hgetall("job:x")


def test_a_repeat_is_only_for_a_job_with_more_than_the_margin_left(client: Any) -> None:
    edge, late = f"{{ deadline = {NOW_MS + 400} }}", f"{{ deadline = {NOW_MS + 399} }}"
    assert again(client, "0", edge)[0] == "ready"
    state, record = again(client, "0", late)
    assert (state, record["cause"]) == ("expired", "no_time_for_retry")
    assert again(client, "0, false, true", late)[1]["cause"] == "no_time_for_retry_call_may_have_happened"
    assert again(client, "600")[0] == "delayed"
    assert again(client, "601")[0] == "expired"


def test_a_repeat_keeps_its_age_only_at_the_head(client: Any) -> None:
    assert again(client, "0")[1]["eligible"] == str(NOW_MS)
    assert again(client, "-5")[1]["eligible"] == str(NOW_MS)
    assert again(client, "0, true")[1]["eligible"] == str(NOW_MS - 50)
    state, record = again(client, "1")
    assert (state, record["ready_at"], record["eligible"]) == ("delayed", str(NOW_MS + 1), str(NOW_MS + 1))


def test_a_canary_whose_lease_ends_has_failed(client: Any) -> None:
    lost = "J.lose(q, job('running', { canary = 'run' }), 'lease_expired')"
    assert worth(client, f"{frame()} q.seen = 0 return {lost}") == "failed"
    assert client.hmget("job:x", "state", "cause", "losses") == ["failed", "lease_expired", None]
    event = "{ J.event(q, job('running', { canary = 'run' })).canary, J.event(q, job('ready')).canary == nil }"
    assert worth(client, f"{frame()} return {event}") == ["run", True]


def test_a_second_loss_blocks(client: Any) -> None:
    assert worth(client, f"{frame()} return J.lose(q, job('running'), 'lease_expired')") == "unknown"
    assert client.hget("job:x", "losses") == "1"
    assert worth(client, f"{frame()} return J.lose(q, job('running', {{ losses = 1 }}), 'lease_expired')") == "blocked"
    assert client.hmget("job:x", "losses", "cause") == ["2", "poison"]
