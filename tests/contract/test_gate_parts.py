"""The gate's own parts at their bounds: how its record reads, and when a time is over, on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import value_of, worth
from tests.gate_frame import FIELDS, FRAME, NOW_MS, gate, run


def read(client: Any, what: str) -> Any:
    return worth(client, f"{FRAME} local g = G.read(q) return {what}")


def test_a_whole_record_reads_as_it_is(client: Any) -> None:
    gate(client)
    assert read(client, "{ g.stored, g.drain_state, g.epoch, g.since, g.green, g.pin == nil, g.ramp == nil }") == [
        "ok", "admit", 7, 1, False, True, True,
    ]  # fmt: skip
    gate(client, green="1", ramp="50", pin="operator", rollback_reason="canary_failed", restoring="x")
    assert read(client, "{ g.stored, g.green, g.ramp, g.pin, g.rollback_reason, g.restoring }") == [
        "ok", True, 50, "operator", "canary_failed", "x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [
        {"drain_state": "odd"}, {"pin": "odd"}, {"rollback_reason": "odd"}, {"ramp": "x"}, {"green": ""},
        {"green": "2"}, {"since": "x"}, {"window": "x"}, {"window": ""},
    ],
)  # fmt: skip
def test_whatever_makes_no_sense_makes_the_gate_unreadable(client: Any, damage: dict[str, str]) -> None:
    gate(client, **damage)
    assert read(client, "{ g.stored, g.drain_state, G.effective(g), G.effective_pin(g) }") == [
        "unreadable", "drain", "drain", "control_data_lost",
    ]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_is_missing_makes_the_gate_unreadable(client: Any, field: str) -> None:
    gate(client)
    client.hdel("control:gate", field)
    assert read(client, "g.stored") == "unreadable"
    assert read(client, "G.glance(q).stored") == "unreadable"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("control:epoch", "x"),
        ("drain_state", "odd"),
        ("admission", "ajar"),
        ("admission", None),
        ("control:epoch", None),
    ],
)
def test_a_key_that_is_garbage_or_gone_makes_the_gate_unreadable(client: Any, key: str, value: str | None) -> None:
    gate(client)
    client.delete(key) if value is None else client.set(key, value)
    assert read(client, "{ g.stored, G.readable(g) }") == ["unreadable", False]


def test_what_was_never_written_is_uninitialised(client: Any) -> None:
    client.mset({"drain_state": "admit", "admission": "open"})
    assert read(client, "{ g.stored, G.effective_pin(g) }") == ["uninitialised", "uninitialised"]
    client.hset("queue:settings", "digest", "x")
    assert read(client, "g.stored") == "unreadable"
    gate(client)
    assert worth(client, f"{FRAME} q.s = nil return G.read(q).stored") == "unreadable"


def test_an_epoch_that_was_seen_later_is_data_that_fell_behind(client: Any) -> None:
    gate(client)
    behind = "{ g.behind, G.readable(g) }"
    assert [worth(client, f"{FRAME} q.seen = {seen} local g = G.read(q) return {behind}") for seen in (7, 8)] == [
        [False, True], [True, False],
    ]  # fmt: skip


def test_the_tighter_of_the_record_and_the_raw_keys_is_in_force(client: Any) -> None:
    def effective(stored: str, state: str, admission: str) -> str:
        gate(client, drain_state=stored)
        client.mset({"drain_state": state, "admission": admission})
        return str(read(client, "G.effective(g)"))

    assert effective("admit", "admit", "open") == "admit"
    assert effective("admit", "admit", "closed") == "reject_new"
    assert effective("admit", "drain", "open") == "drain"
    assert effective("drain", "admit", "open") == "drain"
    assert effective("reject_new", "admit", "closed") == "reject_new"
    assert effective("recovering", "reject_new", "closed") == "recovering"


def test_the_share_that_is_admitted_is_0_unless_all_is_well(client: Any) -> None:
    gate(client)
    assert read(client, "G.admitted_percent(q, g)") == 100
    gate(client, ramp="10")
    assert read(client, "G.admitted_percent(q, g)") == 10
    for seen, percent in ((NOW_MS - 15, 10), (NOW_MS - 16, 0), (NOW_MS + 15, 10), (NOW_MS + 16, 0)):
        client.set("control:seen", seen)
        assert read(client, "G.admitted_percent(q, g)") == percent
    gate(client)
    client.set("admission", "closed")
    assert read(client, "G.admitted_percent(q, g)") == 0
    client.delete("admission")
    assert read(client, "G.admitted_percent(q, g)") == 0


def test_an_opening_is_lately_for_a_while(client: Any) -> None:
    def lately(at: int) -> bool:
        return worth(client, f"{FRAME} return G.reopened_lately(q, {{ reopened_at = {at} }})") is True

    assert [lately(at) for at in (0, NOW_MS - 60, NOW_MS - 59, NOW_MS)] == [False, False, True, True]
    assert not worth(client, f"{FRAME} q.now = 9 return G.reopened_lately(q, {{ reopened_at = 0 }})")


def test_only_a_run_of_the_two_that_hold_the_lock_and_that_goes_on_is_live(client: Any) -> None:
    def live(**changes: str) -> bool:
        run(client, **changes)
        return worth(client, f"{FRAME} local run = G.live_run(q, 'r') return run ~= nil and run.id == 'r'") is True

    assert live()
    assert live(state="rolling_back")
    assert live(runbook="rollback-and-audit")
    assert not live(state="succeeded")
    assert not live(runbook="reject-and-prepare")
    client.hdel("run:r", "runbook")
    assert worth(client, f"{FRAME} return {{ G.live_run(q, 'r') == nil, G.live_run(q, nil) == nil }}") == [True, True]


def test_a_recovery_is_live_while_its_run_does_not_roll_back(client: Any) -> None:
    def recovery(body: str) -> bool:
        return value_of(client, f"G.recovery_live({{ run = {body} }})") is True

    assert recovery("{ runbook = 'drain-and-recover', state = 'running' }")
    assert not recovery("{ runbook = 'drain-and-recover', state = 'rolling_back' }")
    assert not recovery("{ runbook = 'rollback-and-audit', state = 'running' }")
    assert not recovery("nil")


def test_duplicates_that_cannot_be_counted_are_one_that_nobody_acknowledged(client: Any) -> None:
    counts = "{ g.confirmed, g.acknowledged, g.audited, g.duplicates, g.duplicates_damaged, g.stored }"
    gate(client)
    assert read(client, counts) == [0, 0, 0, False, False, "ok"]
    client.hset("control:duplicates", mapping={"confirmed": 3, "acknowledged": 3, "audited": 2})
    assert read(client, counts) == [3, 3, 2, False, False, "ok"]
    client.hset("control:duplicates", "acknowledged", 2)
    assert read(client, counts)[3] is True
    for field in ("confirmed", "acknowledged", "audited"):
        client.hset("control:duplicates", mapping={"confirmed": 3, "acknowledged": 3, "audited": 2, field: "x"})
        assert read(client, counts) == [1, 0, 0, True, True, "unreadable"]
    worth(client, f"{FRAME} G.count_duplicate(q, 'k', 'n') return 1")
    assert client.hget("control:duplicates", "last_key") is None
    worth(client, f"{FRAME} local g = G.read(q) G.repair(q, g) return g.window")
    assert client.hgetall("control:duplicates") == {"confirmed": "1", "acknowledged": "0", "audited": "0"}
    worth(client, f"{FRAME} G.count_duplicate(q, 'k', 'n') return 1")
    assert client.hmget("control:duplicates", "confirmed", "last_key") == ["2", "k"]
    client.delete("control:duplicates")
    client.set("control:duplicates", "x")
    assert read(client, counts) == [1, 0, 0, True, True, "unreadable"]


def test_a_repair_leaves_what_is_whole(client: Any) -> None:
    gate(client)
    client.hset("control:duplicates", "confirmed", 3)
    assert worth(client, f"{FRAME} local g = G.read(q) G.repair(q, g) return g.window") == "5"
    assert client.hgetall("control:duplicates") == {"confirmed": "3"}
    gate(client, window="x")
    assert worth(client, f"{FRAME} local g = G.read(q) G.repair(q, g) return g.window") == "0"


def test_a_record_that_stayed_the_same_is_read_once(client: Any) -> None:
    gate(client)
    client.config_resetstat()
    twice = "local a, b = G.read(q), G.glance(q) return { a.since, b.since }"
    assert worth(client, f"{FRAME} {twice}") == [1, 1]
    assert client.info("commandstats")["cmdstat_hgetall"]["calls"] == 1
    changed = "redis.call('HSET', 'control:gate', 'since', '2') return { a.since, G.read(q).since }"
    assert worth(client, f"{FRAME} local a = G.read(q) {changed}") == [1, 2]


def test_what_a_caller_has_seen_is_kept_once_and_counts_for_all_until_a_move_is_later(client: Any) -> None:
    gate(client)
    note = "local g = G.read(q) G.note_behind(q, g) return redis.call('HGET', 'control:gate', 'brought')"
    for seen, kept in ((7, False), (9, "9"), (8, "9"), (10, "10"), (2**52 + 1, "10")):
        assert worth(client, f"{FRAME} q.seen = {seen} {note}") == kept
    client.config_resetstat()
    assert worth(client, f"{FRAME} q.seen = 10 {note}") == "10"
    assert "cmdstat_hset" not in client.info("commandstats"), "it is known already"
    assert read(client, "{ g.behind, G.readable(g), q.seen }") == [True, False, 10]
    client.set("control:epoch", "10")
    assert read(client, "{ g.behind, G.readable(g) }") == [False, True]
    for garbage in ("x", str(2**52 + 1), "9" * 16):
        client.hset("control:gate", "brought", garbage)
        assert read(client, "{ g.stored, g.behind }") == ["ok", False]
    client.hset("control:gate", "brought", str(2**52))
    assert read(client, "{ g.stored, g.behind }") == ["ok", True]
