"""The controller's own parts at their bounds: its lease, overdue limits, the dwell and the exit of reject_new."""

from __future__ import annotations

from typing import Any

from tests.function_values import worth
from tests.gate_frame import FRAME, NOW_MS, gate, run
from tests.run_frame import asked, raw, recovering, stands


def lead(client: Any, who: str = "me", **lock: Any) -> dict[str, Any]:
    """Ask to lead where a lock is so."""
    client.delete("lock:controller")
    if lock:
        client.hset("lock:controller", mapping=lock)
    answer: dict[str, Any] = worth(client, f"{FRAME} q.a.controller = '{who}' return commands.lead(q)")
    return answer


def test_a_lease_is_taken_over_at_the_very_instant_it_ends(client: Any) -> None:
    assert lead(client) == {"leading": True, "fence": f"{NOW_MS}000"}
    held = {"owner": "you", "fence": "5"}
    assert lead(client, **held, lease_end=NOW_MS + 1) == {"leading": False, "fence": ""}
    assert lead(client, **held, lease_end=NOW_MS) == {"leading": True, "fence": f"{NOW_MS}000"}
    assert lead(client, **held, lease_end="x")["leading"] is True
    # No lease lasts longer than it may: a clock was set back since it was given.
    assert lead(client, **held, lease_end=NOW_MS + 30)["leading"] is False
    assert lead(client, **held, lease_end=NOW_MS + 31)["leading"] is True
    assert lead(client, owner="you", fence=f"{NOW_MS}007", lease_end=1)["fence"] == f"{NOW_MS}008"
    assert client.hget("lock:controller", "lease_end") == str(NOW_MS + 30)


def test_whoever_leads_keeps_its_fence(client: Any) -> None:
    assert lead(client, owner="me", fence="5", lease_end=NOW_MS + 1) == {"leading": True, "fence": "5"}
    assert lead(client, owner="me", fence="", lease_end=NOW_MS + 1)["fence"] == f"{NOW_MS}000"
    assert worth(client, f"{FRAME} q.s = nil return commands.lead(q)") == {"leading": True, "fence": "0"}


def test_a_lease_that_has_ended_leads_no_more(client: Any) -> None:
    def led(fence: str) -> bool:
        return worth(client, f"{FRAME} return led(q, '{fence}')") is True

    assert [led(fence) for fence in ("0", "5")] == [True, False]
    client.hset("lock:controller", mapping={"fence": "5", "lease_end": NOW_MS + 1})
    assert [led(fence) for fence in ("0", "5", "6")] == [False, True, False]
    for end in (NOW_MS, "x"):
        client.hset("lock:controller", "lease_end", end)
        assert not led("5")


def overdue(client: Any, **fields: Any) -> tuple[str, str | None]:
    """Look for an overdue limit, and give the gate's state and why it was rolled back."""
    gate(client, **fields)
    client.set("drain_state", fields.get("drain_state", "admit"))
    client.set("admission", "open" if fields.get("drain_state", "admit") == "admit" else "closed")
    worth(client, f"{FRAME} overdue(q, G.read(q)) return 1")
    state, reason = client.hmget("control:gate", "drain_state", "rollback_reason")
    return state, reason or None


def test_a_limit_is_overdue_past_its_grace_and_says_which_it_was(client: Any) -> None:
    edge, past = NOW_MS - 10, NOW_MS - 11
    waiting = {"drain_state": "recovering"}
    assert overdue(client, **waiting, limit_at=past) == ("recovering", None), "without a run"
    run(client)
    assert overdue(client, **waiting, limit_at=edge) == ("recovering", None)
    assert overdue(client, **waiting, limit_at=0) == ("recovering", None)
    for fields, reason in (
        (waiting, "canary_failed"), (waiting | {"green": "1"}, "queue_age_not_recovering"),
        ({"ramp": "10"}, "queue_age_not_recovering"),
    ):  # fmt: skip
        run(client)
        assert overdue(client, **fields, limit_at=past) == ("drain", reason)
    run(client)
    assert overdue(client, limit_at=past) == ("admit", None)
    run(client, held_until=NOW_MS + 1)
    assert overdue(client, **waiting, limit_at=past) == ("recovering", None)
    run(client, held_until=NOW_MS)
    assert overdue(client, **waiting, limit_at=0) == ("drain", "manual_operator_hold")


def dwell(client: Any, **fields: Any) -> tuple[str, str | None]:
    """Return to reject_new, and give the dwell and what was counted."""
    client.delete("counters")
    gate(client, **fields)
    enter = "G.enter_reject(q, G.read(q), { reason = 'r', actor = 'a' }) write_counts(q)"
    worth(client, f"{FRAME} {enter} return 1")
    return client.hget("control:gate", "dwell_ms"), client.hget("counters", "reject_returns")


def test_each_soon_return_doubles_the_dwell_up_to_its_most(client: Any) -> None:
    assert dwell(client, dwell_ms=70) == ("100", None)
    assert dwell(client, dwell_ms=70, left_reject_at=NOW_MS - 61) == ("100", None)
    assert dwell(client, dwell_ms=70, left_reject_at=NOW_MS - 60) == ("140", "1")
    assert dwell(client, dwell_ms=140, left_reject_at=NOW_MS) == ("160", "1")
    assert client.hmget("control:gate", "drain_state", "ok_since") == ["reject_new", "0"]
    gate(client, dwell_ms=70)
    young = "q.now = 50 local g = G.read(q) G.enter_reject(q, g, { reason = 'r', actor = 'a' }) return g.dwell_ms"
    assert worth(client, f"{FRAME} {young}") == 100


def left(client: Any, stale: str = "false", **fields: Any) -> bool:
    """Try to leave reject_new, where the exit condition has held for as long as it must unless told otherwise."""
    gate(client, **{"drain_state": "reject_new", "ok_since": NOW_MS - 100} | fields)
    worth(client, f"{FRAME} leave_reject(q, G.read(q), {stale}, {{ reason = 'r', actor = 'a' }}) return 1")
    return bool(client.hget("control:gate", "left_reject_at") == str(NOW_MS))


def test_reject_new_is_left_once_its_dwell_is_over_and_nothing_stands_against_it(client: Any) -> None:
    assert left(client)
    assert not left(client, stale="true")
    assert not left(client, ok_since=NOW_MS - 99)
    assert not left(client, ok_since=0)
    assert not left(client, ok_since=NOW_MS - 100, drain_state="drain")
    assert not left(client, pin="operator")
    assert not left(client, rollback_reason="canary_failed")
    client.hset("control:duplicates", "confirmed", 1)
    assert not left(client)
    client.delete("control:duplicates")
    run(client)
    assert not left(client)


def tracked(client: Any, ok: str = "true", stale: str = "false", seen: int = NOW_MS, **fields: Any) -> int:
    """Track the exit condition, and give since when it holds."""
    gate(client, **{"drain_state": "reject_new"} | fields)
    client.set("control:seen", seen)
    worth(client, f"{FRAME} q.a.exit_ok = {ok} track_exit(q, G.read(q), {stale}) return 1")
    return int(client.hget("control:gate", "ok_since"))


def test_the_exit_holds_only_while_somebody_looked(client: Any) -> None:
    assert tracked(client) == NOW_MS
    assert tracked(client, ok_since=5) == 5
    assert tracked(client, stale="true") == 0
    assert tracked(client, stale="true", ok_since=5) == 5
    assert tracked(client, ok="false", ok_since=5) == 0
    assert tracked(client, drain_state="drain", ok_since=5) == 0
    assert tracked(client, seen=NOW_MS - 16, ok_since=5) == NOW_MS
    assert tracked(client, seen=NOW_MS - 16, ok_since=5, stale="true") == 0
    assert tracked(client, seen=NOW_MS - 15, ok_since=5) == 5


def test_what_is_tracked_is_written_only_where_it_changes(client: Any) -> None:
    tracked(client, ok_since=5)
    client.config_resetstat()
    worth(client, f"{FRAME} q.a.exit_ok = true track_exit(q, G.read(q), false) return 1")
    assert "cmdstat_hset" not in client.info("commandstats")


def drained(client: Any, **fields: Any) -> list[str]:
    gate(client, **fields)
    worth(client, f"{FRAME} drained(q, G.read(q), {{ reason = 'r', actor = 'a' }}) return 1")
    found: list[str] = client.hmget("control:gate", "drain_state", "pin", "pin_note", "since")
    return found


def test_a_second_drain_soon_after_a_reopening_pins(client: Any) -> None:
    assert drained(client) == ["drain", "", "", str(NOW_MS)]
    assert drained(client, reopened_at=NOW_MS - 59)[:3] == [
        "drain",
        "repeated_drain",
        "drained again 0 s after a reopening",
    ]
    assert drained(client, reopened_at=NOW_MS - 60)[1] == ""
    assert drained(client, reopened_at=NOW_MS - 59, pin="operator", pin_note="n")[:3] == ["drain", "operator", "n"]
    assert drained(client, drain_state="drain") == ["drain", "", "", "1"]
    run(client)
    assert drained(client, drain_state="recovering")[0] == "recovering"
    assert drained(client, drain_state="recovering", green="1")[:2] == ["drain", "rolled_back"]


def decided(client: Any, asked: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """Let the controller's decision be applied, and give the answer with the state, the pin and when it looked."""
    gate(client, **fields)
    client.set("control:seen", NOW_MS - 5)
    ask = f"q.a = {{ fence = '0', epoch = '7', reason = 'r', exit_ok = false, {asked} }}"
    answer = worth(client, f"{FRAME} {ask} return commands.move_gate(q)")
    return answer, [*client.hmget("control:gate", "drain_state", "pin"), client.get("control:seen")]


def test_a_decision_moves_the_gate_and_says_that_it_looked(client: Any) -> None:
    seen = str(NOW_MS)
    answer, state = decided(client, "action = 'drain'")
    assert (answer["answer"], answer["epoch"], state) == ("moved", f"{NOW_MS}000", ["drain", "", seen])
    answer, state = decided(client, "action = 'admit'")
    assert (answer["answer"], answer["epoch"], state) == ("unchanged", "7", ["admit", "", seen])
    answer, state = decided(client, "action = 'reject_new'")
    assert (answer["answer"], state) == ("moved", ["reject_new", "", seen])
    answer, state = decided(client, "action = 'roll_back'")
    assert (answer["answer"], state) == ("unchanged", ["admit", "", seen])
    answer, state = decided(client, "action = 'hold'", ramp="10")
    assert (answer["answer"], state) == ("moved", ["drain", "run_lost", seen])


def test_who_leads_no_more_decides_nothing_and_damage_is_answered(client: Any) -> None:
    answer, state = decided(client, "action = 'drain', fence = '1'")
    assert (answer, state) == (
        {"answer": "stale", "drain_state": "drain", "epoch": "0"},
        ["admit", "", str(NOW_MS - 5)],
    )
    run(client)
    answer, state = decided(client, "action = 'drain'", pin="odd")
    assert answer == {"answer": "unreadable", "drain_state": "drain", "epoch": "7"}
    assert (state[2], client.hget("run:r", "state")) == (str(NOW_MS - 5), "lost")


def test_a_decision_to_roll_back_needs_duplicates_and_a_ramp_s_reject_is_its_rollback(client: Any) -> None:
    client.hset("control:duplicates", "confirmed", 1)
    answer, state = decided(client, "action = 'roll_back', audit_run_id = 'audit'")
    assert (answer["answer"], state[:2], client.get("lock:run")) == ("moved", ["drain", "rolled_back"], "audit")
    client.flushall()
    run(client)
    answer, state = decided(client, "action = 'reject_new'", ramp="10")
    assert (answer["answer"], state[:2]) == ("moved", ["drain", "rolled_back"])


def test_a_tick_adopts_and_ends_what_is_overdue_only_for_whoever_leads(client: Any) -> None:
    for fence, edits, rolled_back in (("0", "hand_edit", "drain"), ("1", "", "recovering")):
        stands(client)
        client.set("drain_state", "drain")
        asked(client, "tick", {}, f"q.v = {{ '', '0', '{fence}' }}")
        assert client.hget("control:gate", "pin") == edits
        recovering(client, limit_at=NOW_MS - 11)
        asked(client, "tick", {}, f"q.v = {{ '', '0', '{fence}' }}")
        assert client.hget("control:gate", "drain_state") == rolled_back
    recovering(client, limit_at=NOW_MS - 11, since="x")
    asked(client, "tick", {}, "q.v = { '', '0', '0' }")
    assert client.hget("control:gate", "drain_state") == "recovering"


def test_a_gate_opens_only_on_the_figures_of_its_own_epoch(client: Any) -> None:
    for epoch, action, answer in (("7", "admit", "moved"), ("6", "admit", "unchanged"), ("7", "hold", "unchanged")):
        gate(client, drain_state="reject_new", ok_since=NOW_MS - 100)
        raw(client, "reject_new")
        ask = {"action": action, "reason": "r", "exit_ok": True, "fence": "0", "epoch": epoch}
        assert asked(client, "move_gate", ask)["answer"] == answer


def test_data_that_fell_behind_closes_and_what_cannot_be_read_ends_all_runs(client: Any) -> None:
    beside = {"id": "b", "runbook": "look", "trigger": "t", "actor": "a", "reason": "r"}
    packed = ", ".join(f"{name} = '{value}'" for name, value in beside.items())
    ask = {"action": "hold", "reason": "r", "exit_ok": False, "fence": "0", "epoch": "7"}
    for more, damage, answer, state, pin in (
        ("", {}, "unchanged", "running", ""), ("q.seen = 8", {}, "moved", "lost", "control_data_lost"),
        ("", {"since": "x"}, "unreadable", "lost", ""),
    ):  # fmt: skip
        stands(client, **damage)
        worth(client, f"{FRAME} R.create_beside(q, {{ {packed} }}) return 1")
        assert asked(client, "move_gate", ask, more)["answer"] == answer
        assert (client.hget("run:b", "state"), client.hget("control:gate", "pin")) == (state, pin)
