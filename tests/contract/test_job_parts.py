"""What the functions do with one job's record and its containers, each part by itself on a real server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.function_values import value_of, worth

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
COSTS, CLASSES = ("-", "browser"), ("known", "other")
PAIRS = [f"{job_class}:{cost}" for job_class in CLASSES for cost in COSTS]


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        plain.sadd("queue:pairs", *PAIRS)
        yield plain


def frame(*, max_pending: int = 10, failed_ms: int = 2 * DAY_MS, final_ms: int = 5000) -> str:
    """Give a call's frame with settings, and one job's record as `J.read` gives it."""
    return (
        f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, counted = {{}}, lifetimes = {{}}, woken = 0, s = {{"
        f" max_pending = {max_pending}, dispatch = 'fifo', retry_budget = 5, loss_budget = 2, timings = {{"
        f" margin_ms = 400, final_retention_ms = {final_ms}, failed_retention_ms = {failed_ms} }},"
        " cost_classes = { browser = {} }, classes = { known = { deadline_ms = 1000 }, long = { deadline_ms = 3000 } } } }"
        " local function job(state, more) local j = { id = 'x', state = state, class = 'known', cost = '-', attempt = 1,"
        f" retries = 0, losses = 0, rev = 1, fence = 5, deadline = {NOW_MS} + 1000, eligible = {NOW_MS} - 50 }}"
        " for name, value in pairs(more or {}) do j[name] = value end return j end "
    )


def family(state: str, job_class: str, cost: str, *, canary: bool = False) -> set[str]:
    """Name the containers that a job in a state is in."""
    costly = cost != "-"
    if state == "ready":
        pair = f"{job_class}:{cost}"
        return {"queue:canary"} if canary else {"queue:pending", f"queue:fifo:{pair}", f"queue:ready:{pair}"}
    if state == "delayed":
        return {"queue:delayed", f"queue:delayed:{job_class}", *([f"queue:delayed:cost:{cost}"] if costly else [])}
    if state == "running":
        own = {"running:canary"} if canary else {f"running:{job_class}"}
        return {"queue:leases", *own, *([f"running:cost:{cost}"] if costly and not canary else [])}
    return {f"queue:{state}", f"queue:{state}:{job_class}"} if state in {"unknown", "blocked"} else set()


STATES = ("ready", "delayed", "running", "unknown", "blocked")
EVERY = set().union(
    *(
        family(state, job_class, cost, canary=canary)
        for state, job_class, cost, canary in itertools.product(STATES, CLASSES, COSTS, (False, True))
    ),
    ("queue:delayed:cost:-", "running:cost:-"),
)


def fill(client: redis.Redis, job_id: str = "x") -> None:
    """Put an id into every container there is."""
    client.rpush("queue:pending", job_id)
    for name in EVERY - {"queue:pending"}:
        client.zadd(name, {job_id: 1})


def holding(client: redis.Redis, job_id: str = "x") -> set[str]:
    """Name the containers that hold an id."""
    listed = {"queue:pending"} if job_id in client.lrange("queue:pending", 0, -1) else set()
    return listed | {name for name in EVERY - {"queue:pending"} if client.zscore(name, job_id) is not None}


KINDS = [
    (state, cost, canary)
    for state, cost, canary in itertools.product(STATES, COSTS, (False, True))
    if not canary or (state in {"ready", "running"} and cost == "-") or (state == "running")
]


@pytest.mark.parametrize(("state", "cost", "canary"), KINDS)
def test_a_job_leaves_and_enters_the_containers_of_its_state_and_no_other(
    client: redis.Redis, state: str, cost: str, canary: bool
) -> None:
    own = family(state, "known", cost, canary=canary)
    named = "'run'" if canary else "nil"
    more = f"{{ cost = '{cost}', lease_end = 7, ready_at = 8, canary = {named} }}"
    fill(client)
    worth(client, f"{frame()} J.leave(q, job('{state}', {more})) return 1")
    assert holding(client) == EVERY - own
    client.delete(*EVERY)
    worth(client, f"{frame()} J.enter(q, job('{state}', {more})) return 1")
    assert holding(client) == own


def test_a_final_job_enters_nothing(client: redis.Redis) -> None:
    for state in ("succeeded", "failed", "expired"):
        assert worth(client, f"{frame()} J.enter(q, job('{state}')) return q.woken") == 0
    assert holding(client) == set()


def test_only_a_ready_job_wakes_a_worker(client: redis.Redis) -> None:
    entered = "J.enter(q, job(state, { lease_end = 7, ready_at = 8 })) woken[state] = q.woken q.woken = 0"
    states = ", ".join(f"'{state}'" for state in STATES)
    woken = worth(
        client, f"{frame()} local woken = {{}} for _, state in ipairs({{ {states} }}) do {entered} end return woken"
    )
    assert woken == {state: int(state == "ready") for state in STATES}


def test_a_requeued_job_is_first_in_the_list_for_people(client: redis.Redis) -> None:
    client.rpush("queue:pending", "a", "b")
    worth(client, f"{frame()} J.enter(q, job('ready'), true) J.enter(q, job('ready', {{ id = 'y' }})) return 1")
    assert client.lrange("queue:pending", 0, -1) == ["x", "a", "b", "y"]


def test_a_list_that_is_too_long_to_keep_is_not_touched(client: redis.Redis) -> None:
    fill(client)
    worth(client, f"{frame(max_pending=20001)} J.leave(q, job('ready')) J.named(q, 'k', 'x', 'ready') return 1")
    worth(client, f"{frame(max_pending=20001)} J.enter(q, job('ready', {{ id = 'y' }})) return 1")
    assert client.lrange("queue:pending", 0, -1) == ["x"]


def test_the_list_is_kept_up_to_what_removing_from_it_may_cost(client: redis.Redis) -> None:
    def kept(most: int, dispatch: str) -> bool:
        return value_of(client, f"J.keeps_list({{ s = {{ max_pending = {most}, dispatch = '{dispatch}' }} }})") is True

    assert [kept(most, "fifo") for most in (20000, 20001)] == [True, False]
    assert [kept(most, "edf") for most in (2000, 2001)] == [True, False]


def test_the_list_is_made_again_oldest_first_and_of_one_age_by_their_ids(client: redis.Redis) -> None:
    client.zadd("queue:fifo:known:-", {"c": 5, "a": 7})
    client.zadd("queue:fifo:other:browser", {"b": 5, "z": 1})
    client.rpush("queue:pending", "left over")
    worth(client, f"{frame()} J.list_anew(q) return 1")
    assert client.lrange("queue:pending", 0, -1) == ["z", "b", "c", "a"]
    worth(client, f"{frame(max_pending=20001)} J.list_anew(q) return 1")
    assert client.exists("queue:pending") == 0


STRAY = {
    "ready": {"queue:pending", *(f"queue:{kind}:{pair}" for kind in ("fifo", "ready") for pair in PAIRS)},
    "delayed": {
        "queue:delayed",
        *(f"queue:delayed:{name}" for name in CLASSES),
        *(f"queue:delayed:cost:{cost}" for cost in COSTS),
    },
    "running": {
        "queue:leases",
        "running:canary",
        *(f"running:{name}" for name in CLASSES),
        *(f"running:cost:{cost}" for cost in COSTS),
    },
    "unknown": {"queue:unknown"},
}


@pytest.mark.parametrize("state", STRAY)
@pytest.mark.parametrize("record", ["", "blocked"])
def test_an_entry_whose_record_says_otherwise_goes_from_all_containers_of_that_state_alone(
    client: redis.Redis, state: str, record: str
) -> None:
    key = sorted(STRAY[state] & {"queue:delayed", "queue:leases", "queue:unknown", "queue:fifo:known:-"})[0]
    fill(client)
    if record:
        client.hset("job:x", "state", record)
    found = worth(client, f"{frame()} local f = J.named(q, '{key}', 'x', '{state}') write_counts(q) return f == nil")
    assert found is True
    assert EVERY - holding(client) == STRAY[state]
    assert client.hgetall("counters") == {"entries_dropped": "1"}
    ((_, entry),) = client.xrange("reconcile:log")
    assert entry["note"] == f"{key} named it, its record is {'in state blocked' if record else 'gone'}"


def test_an_entry_whose_record_says_the_same_is_that_job(client: redis.Redis) -> None:
    fill(client)
    client.hset("job:x", mapping={"state": "delayed", "class": "known"})
    assert worth(client, f"{frame()} return J.named(q, 'queue:delayed', 'x', 'delayed').id") == "x"
    assert holding(client) == EVERY


def test_a_record_reads_as_numbers_whatever_it_leaves_out(client: redis.Redis) -> None:
    client.hset("job:x", mapping={"state": "ready", "class": "known", "admitted_at": "7", "canary": ""})
    full = {"cost": "c", "deadline": "1", "attempt": "2", "retries": "3", "eligible": "4", "fence": "5", "losses": "6"}
    client.hset("job:y", mapping={"state": "ready", "class": "known", "rev": "8", "canary": "run", **full})
    client.hset("job:z", mapping={"state": "ready", "class": "known"})
    client.hset("job:refused", "state", "refused")
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
    assert value_of(client, "{ J.read({ p = '' }, 'refused') == nil, J.read({ p = '' }, 'gone') == nil }") == [
        True,
        True,
    ]


FULL: dict[str, str] = {
    "state": "unknown", "class": "other", "declared": "odd", "cost": "browser", "rev": "4", "attempt": "2", "retries": "1",
    "losses": "1", "fence": "9", "canary": "run", "worker": "w", "deadline": "5", "admitted_at": "1", "eligible": "2",
    "fp": "f", "intent": "3", "intent_fence": "9", "intent_worker": "w", "intent_attempt": "2", "confirmed": "4",
    "reference": "r",
}  # fmt: skip
SMALL = {"state": "ready", "class": "known", "deadline": "5", "admitted_at": "1", "fp": "f"}


@pytest.mark.parametrize("record", [FULL, SMALL])
def test_what_is_shown_of_a_job_is_stored_as_the_same_record_again(client: redis.Redis, record: dict[str, str]) -> None:
    client.hset("job:x", mapping=dict(record))
    assert worth(client, "return J.stored(J.shown({ p = '' }, 'x'))") == record


def test_a_job_is_shown_with_nothing_left_out(client: redis.Redis) -> None:
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


def test_a_refusal_is_shown_as_a_decision_alone(client: redis.Redis) -> None:
    record = {"state": "refused", "fp": "f", "reason": "overloaded", "retry_at": "8", "decided_at": "6"}
    client.hset("job:x", mapping=record)
    client.hset("job:y", mapping={"state": "refused"})
    refusals = value_of(client, "{ J.shown({ p = '' }, 'x'), J.shown({ p = '' }, 'y') }")
    x = {"job_id": "x", "fp": "f", "accepted": "0", "reason": "overloaded", "retry_at": "8", "at": "6"}
    y = {"job_id": "y", "fp": "", "accepted": "0", "reason": "", "retry_at": "0", "at": "0"}
    assert refusals == [{"decision": x}, {"decision": y}]
    assert value_of(client, "J.shown({ p = '' }, 'gone') == nil") is True


def pairs_of(client: redis.Redis, settings: str = "q.s") -> list[str]:
    """Give the pairs that a queue with these settings knows of."""
    body = f"{frame()} q.s = {settings} local n = {{ 'first' }} for _, p in ipairs(J.pairs(q)) do n[#n + 1] = p.name end return n"
    found: list[str] = worth(client, body)
    return found[1:]


def test_the_pairs_are_those_ever_admitted_in_one_order_and_no_strangers(client: redis.Redis) -> None:
    client.sadd("queue:pairs", "a stranger")
    assert pairs_of(client) == sorted(PAIRS)


def test_without_its_list_a_queue_looks_for_the_pairs_of_its_contract(client: redis.Redis) -> None:
    client.delete("queue:pairs")
    assert pairs_of(client) == []
    assert pairs_of(client, "nil") == []
    client.zadd("queue:ready:known:browser", {"x": 1})
    assert pairs_of(client) == ["known:browser"]
    client.zadd("queue:delayed:long", {"y": 1})
    client.zadd("running:other", {"z": 1})
    assert pairs_of(client) == ["known:browser", "long:-", "long:browser", "other:-", "other:browser"]
    client.sadd("queue:pairs", "known:-")
    assert pairs_of(client) == ["known:-"]


def test_each_class_is_named_once(client: redis.Redis) -> None:
    assert worth(client, f"{frame()} return J.classes(q)") == sorted(CLASSES)


def test_a_new_pair_is_remembered_and_what_was_lost_with_it(client: redis.Redis) -> None:
    client.delete("queue:pairs")
    client.zadd("queue:ready:known:browser", {"x": 1})
    know = "J.know_pair(q, 'known', 'browser') local after = #J.pairs(q) J.know_pair(q, 'long', '-')"
    assert worth(client, f"{frame()} {know} return {{ after, #J.pairs(q) }}") == [1, 2]
    assert client.smembers("queue:pairs") == {"known:browser", "long:-"}


def test_a_known_pair_is_not_written_again(client: redis.Redis) -> None:
    client.config_resetstat()
    assert worth(client, f"{frame()} J.know_pair(q, 'known', '-') return #J.pairs(q)") == len(PAIRS)
    assert "cmdstat_sadd" not in client.info("commandstats")


def test_a_move_that_no_job_makes_is_an_error_and_changes_nothing(client: redis.Redis) -> None:
    for state, other in (("ready", "unknown"), ("succeeded", "ready"), ("delayed", "running")):
        error = worth(client, f"{frame()} local _, e = pcall(J.move, q, job('{state}'), '{other}', {{}}) return e")
        assert error.endswith(f"job x cannot move from {state} to {other}")
    assert client.exists("job:x") == 0


def moved(client: redis.Redis, state: str, other: str, more: str = "{}") -> dict[str, str]:
    """Move a job, and give its record."""
    worth(client, f"{frame()} J.move(q, job('{state}', {more}), '{other}', {{ cause = 'c' }}) write_counts(q) return 1")
    record: dict[str, str] = client.hgetall("job:x")
    client.delete("job:x")
    return record


def test_a_move_writes_its_fields_and_what_was_to_be_written_with_it(client: redis.Redis) -> None:
    assert moved(client, "running", "unknown") == {"state": "unknown", "rev": "2", "cause": "c"}
    assert client.exists("counters") == 0
    more = "{ also = { losses = 1 }, settled_in = function(state) return 'in ' .. state end }"
    both = {"state": "succeeded", "rev": "2", "cause": "c", "losses": "1", "settled": "in succeeded"}
    assert moved(client, "unknown", "succeeded", more) == both
    assert client.hgetall("counters") == {"unknown_left": "1"}


def failures(client: redis.Redis) -> list[dict[str, Any]]:
    return [json.loads(line) for key in client.keys("failed:*") for line in client.lrange(key, 0, -1)]


def finished(client: redis.Redis, state: str, cause: str = "nil", more: str = "{}") -> dict[str, str]:
    """End a running job, and give what was counted of its class."""
    client.delete("counters", "counters:known", "job:x", *client.keys("failed:*"))
    worth(client, f"{frame()} J.finish(q, job('running', {more}), '{state}', {cause}) write_counts(q) return 1")
    counted: dict[str, str] = client.hgetall("counters:known")
    return counted


def test_every_end_is_counted_by_class_and_has_its_line_unless_it_succeeded(client: redis.Redis) -> None:
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


def test_a_deadline_is_met_up_to_its_very_instant(client: redis.Redis) -> None:
    assert finished(client, "succeeded", more=f"{{ deadline = {NOW_MS} }}") == {"succeeded": "1", "met": "1"}
    assert failures(client) == []
    assert client.hget("job:x", "cause") == ""
    assert finished(client, "succeeded", more=f"{{ deadline = {NOW_MS - 1} }}") == {"succeeded": "1", "missed": "1"}
    assert client.hgetall("counters") == {"missed": "1"}


def test_a_canary_ends_without_a_count_or_a_line(client: redis.Redis) -> None:
    assert finished(client, "failed", more="{ canary = 'run' }") == {}
    assert (client.exists("counters"), failures(client)) == (0, [])
    assert 0 < client.pttl("job:x") <= 6000


def test_a_canary_that_never_ran_ends_where_its_record_is(client: redis.Redis) -> None:
    client.hset("job:x", mapping={"state": "ready", "class": "known", "canary": "run"})
    worth(
        client, f"{frame()} J.finish_record(q, 'x', 'expired', 'c') J.finish_record(q, 'gone', 'expired', 'c') return 1"
    )
    assert (client.hget("job:x", "state"), client.exists("job:gone")) == ("expired", 0)
    assert client.pttl("job:x") > 0


@pytest.mark.parametrize(("kept_ms", "wanted"), [(5000, 6000), (9000, 9000)])
def test_a_final_job_is_kept_at_least_twice_the_longest_deadline(
    client: redis.Redis, kept_ms: int, wanted: int
) -> None:
    client.hset("job:x", "state", "succeeded")
    client.set("payload:x", "{}")
    worth(client, f"{frame(final_ms=kept_ms)} J.retain(q, job('succeeded')) return 1")
    assert all(wanted - 1000 < client.pttl(key) <= wanted for key in ("job:x", "payload:x"))


def left_of(client: redis.Redis, kept_ms: int, *lines: str) -> list[str]:
    """Give what is left of a day's list after another failure was recorded."""
    client.delete("failed:day")
    client.rpush("failed:day", *lines)
    worth(client, f"{frame(failed_ms=kept_ms)} drop_lapsed_failures(q, 'failed:day') return 1")
    left: list[str] = client.lrange("failed:day", 0, -1)
    return left


def test_a_day_s_list_goes_at_its_head_twice_as_fast_as_it_grows(client: redis.Redis) -> None:
    old, edge = (json.dumps({"at_ms": NOW_MS - kept}) for kept in (1001, 1000))
    assert left_of(client, 1000, old, old, old) == [old]
    assert left_of(client, 1000, old, edge, old) == [edge, old]
    assert left_of(client, 1000, old) == []
    assert left_of(client, 1000, "no JSON", "5", edge) == [edge]
    assert left_of(client, 1000, '{"at_ms": "x"}', "[]", edge) == [edge]
    assert left_of(client, DAY_MS, "no JSON") == ["no JSON"]
    assert left_of(client, DAY_MS - 1, "no JSON") == []


def again(client: redis.Redis, call: str, more: str = "{}") -> tuple[str, dict[str, str]]:
    client.delete("job:x")
    state = worth(client, f"{frame()} local r = J.again(q, job('running', {more}), {call}) return r")
    return state, client.hgetall("job:x")


def test_a_repeat_is_only_for_a_job_with_more_than_the_margin_left(client: redis.Redis) -> None:
    edge, late = f"{{ deadline = {NOW_MS + 400} }}", f"{{ deadline = {NOW_MS + 399} }}"
    assert again(client, "0", edge)[0] == "ready"
    state, record = again(client, "0", late)
    assert (state, record["cause"]) == ("expired", "no_time_for_retry")
    assert again(client, "0, false, true", late)[1]["cause"] == "no_time_for_retry_call_may_have_happened"
    assert again(client, "600")[0] == "delayed"
    assert again(client, "601")[0] == "expired"


def test_a_repeat_keeps_its_age_only_at_the_head(client: redis.Redis) -> None:
    assert again(client, "0")[1]["eligible"] == str(NOW_MS)
    assert again(client, "-5")[1]["eligible"] == str(NOW_MS)
    assert again(client, "0, true")[1]["eligible"] == str(NOW_MS - 50)
    state, record = again(client, "1")
    assert (state, record["ready_at"], record["eligible"]) == ("delayed", str(NOW_MS + 1), str(NOW_MS + 1))


def test_a_second_loss_blocks(client: redis.Redis) -> None:
    assert worth(client, f"{frame()} return J.lose(q, job('running'), 'lease_expired')") == "unknown"
    assert client.hget("job:x", "losses") == "1"
    assert worth(client, f"{frame()} return J.lose(q, job('running', {{ losses = 1 }}), 'lease_expired')") == "blocked"
    assert client.hmget("job:x", "losses", "cause") == ["2", "poison"]
