"""In which containers a job is, whatever moves it, each part by itself on a real server."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.function_values import value_of, worth
from tests.job_frame import CLASSES, COSTS, PAIRS, frame


@pytest.fixture
def client(client: Any) -> Any:
    client.sadd("queue:pairs", *PAIRS)
    return client


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


def fill(client: Any, job_id: str = "x") -> None:
    """Put an id into every container there is."""
    client.rpush("queue:pending", job_id)
    for name in EVERY - {"queue:pending"}:
        client.zadd(name, {job_id: 1})


def holding(client: Any, job_id: str = "x") -> set[str]:
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
    client: Any, state: str, cost: str, canary: bool
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


def test_a_final_job_enters_nothing(client: Any) -> None:
    for state in ("succeeded", "failed", "expired"):
        assert worth(client, f"{frame()} J.enter(q, job('{state}')) return q.woken") == 0
    assert holding(client) == set()


def test_only_a_ready_job_wakes_a_worker(client: Any) -> None:
    entered = "J.enter(q, job(state, { lease_end = 7, ready_at = 8 })) woken[state] = q.woken q.woken = 0"
    states = ", ".join(f"'{state}'" for state in STATES)
    woken = worth(
        client, f"{frame()} local woken = {{}} for _, state in ipairs({{ {states} }}) do {entered} end return woken"
    )
    assert woken == {state: int(state == "ready") for state in STATES}


def test_a_requeued_job_is_first_in_the_list_for_people(client: Any) -> None:
    client.rpush("queue:pending", "a", "b")
    worth(client, f"{frame()} J.enter(q, job('ready'), true) J.enter(q, job('ready', {{ id = 'y' }})) return 1")
    assert client.lrange("queue:pending", 0, -1) == ["x", "a", "b", "y"]


def test_a_list_that_is_too_long_to_keep_is_not_touched(client: Any) -> None:
    fill(client)
    worth(client, f"{frame(max_pending=20001)} J.leave(q, job('ready')) J.named(q, 'k', 'x', 'ready') return 1")
    worth(client, f"{frame(max_pending=20001)} J.enter(q, job('ready', {{ id = 'y' }})) return 1")
    assert client.lrange("queue:pending", 0, -1) == ["x"]


def test_the_list_is_kept_up_to_what_removing_from_it_may_cost(client: Any) -> None:
    def kept(most: int, dispatch: str) -> bool:
        return value_of(client, f"J.keeps_list({{ s = {{ max_pending = {most}, dispatch = '{dispatch}' }} }})") is True

    assert [kept(most, "fifo") for most in (20000, 20001)] == [True, False]
    assert [kept(most, "edf") for most in (2000, 2001)] == [True, False]


def test_the_list_is_made_again_oldest_first_and_of_one_age_by_their_ids(client: Any) -> None:
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


@pytest.mark.parametrize(
    ("state", "key"),
    [
        ("ready", "queue:fifo:known:-"), ("delayed", "queue:delayed"), ("delayed", "queue:delayed:known"),
        ("running", "queue:leases"), ("running", "running:known"), ("unknown", "queue:unknown"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("record", ["", "blocked"])
def test_an_entry_whose_record_says_otherwise_goes_from_all_containers_of_that_state_alone(
    client: Any, state: str, key: str, record: str
) -> None:
    fill(client)
    if record:
        client.hset("job:x", mapping={"state": record, "class": "known"})
    found = worth(client, f"{frame()} local f = J.named(q, '{key}', 'x', '{state}') write_counts(q) return f == nil")
    assert found is True
    assert EVERY - holding(client) == STRAY[state]
    assert client.hgetall("counters") == {"entries_dropped": "1"}
    ((_, entry),) = client.xrange("reconcile:log")
    assert entry["note"] == f"{key} named it, its record is {'in state blocked' if record else 'gone or not whole'}"


def test_an_entry_whose_record_says_the_same_is_that_job(client: Any) -> None:
    fill(client)
    client.hset("job:x", mapping={"state": "delayed", "class": "known"})
    assert worth(client, f"{frame()} return J.named(q, 'queue:delayed', 'x', 'delayed').id") == "x"
    assert holding(client) == EVERY


def pairs_of(client: Any, settings: str = "q.s") -> list[str]:
    """Give the pairs that a queue with these settings knows of."""
    names = "local n = { 'first' } for _, p in ipairs(J.pairs(q)) do n[#n + 1] = p.name end return n"
    body = f"{frame()} q.s = {settings} {names}"
    found: list[str] = worth(client, body)
    return found[1:]


def test_the_pairs_are_those_ever_admitted_in_one_order_and_no_strangers(client: Any) -> None:
    client.sadd("queue:pairs", "a stranger")
    assert pairs_of(client) == sorted(PAIRS)


def test_without_its_list_a_queue_looks_for_the_pairs_of_its_contract(client: Any) -> None:
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


def test_each_class_is_named_once(client: Any) -> None:
    assert worth(client, f"{frame()} return J.classes(q)") == sorted(CLASSES)


def test_a_new_pair_is_remembered_and_what_was_lost_with_it(client: Any) -> None:
    client.delete("queue:pairs")
    client.zadd("queue:ready:known:browser", {"x": 1})
    know = "J.know_pair(q, 'known:browser') local after = #J.pairs(q) J.know_pair(q, 'long:-')"
    assert worth(client, f"{frame()} {know} return {{ after, #J.pairs(q) }}") == [1, 2]
    assert client.smembers("queue:pairs") == {"known:browser", "long:-"}


def test_a_known_pair_is_not_written_again(client: Any) -> None:
    client.config_resetstat()
    assert worth(client, f"{frame()} J.know_pair(q, 'known:-') return #J.pairs(q)") == len(PAIRS)
    assert "cmdstat_sadd" not in client.info("commandstats")
