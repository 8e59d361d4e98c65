"""What writes the gate, each part by itself on a real server: moves, adopted hand edits, the audit of duplicates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import worth
from tests.gate_frame import FRAME, NOW_MS, gate, run


def moved(client: Any, start: str, state: str, *, why: str = "", **fields: Any) -> dict[str, str]:
    """Move a gate with these fields from one state to another, and give its record."""
    gate(client, drain_state=start, **fields)
    body = (
        f"local g = G.read(q) g.drain_state = '{state}' G.move(q, g, '{start}', {{ reason = 'r', actor = 'a' {why} }})"
    )
    worth(client, f"{FRAME} {body} return 1")
    record: dict[str, str] = client.hgetall("control:gate")
    return record


def test_a_move_to_another_state_begins_anew_what_belongs_to_it(client: Any) -> None:
    full = {"green": "1", "ramp": "10", "limit_at": "9", "ok_since": "8", "pin_note": "n"}
    names = ("since", "green", "ramp", "limit_at", "ok_since", "window", "pin_note")
    now, epoch = str(NOW_MS), f"{NOW_MS}000"

    def after(start: str, state: str, **more: Any) -> list[str]:
        record = moved(client, start, state, **(full | more))
        return [record[name] for name in names]

    assert after("admit", "admit") == ["1", "0", "10", "9", "0", "5", ""]
    assert after("admit", "admit", ramp="") == ["1", "0", "", "0", "0", "5", ""]
    assert after("admit", "drain") == [now, "0", "", "0", "0", "5", ""]
    assert after("admit", "reject_new") == [now, "0", "", "0", "8", "5", ""]
    assert after("drain", "recovering") == [now, "1", "", "9", "0", epoch, ""]
    assert after("recovering", "recovering") == ["1", "1", "", "9", "0", "5", ""]
    assert after("recovering", "recovering", why=", window = true") == ["1", "1", "", "9", "0", epoch, ""]
    assert after("drain", "drain", pin="operator") == ["1", "0", "", "0", "0", "5", "n"]


def test_a_move_shows_in_the_raw_keys_its_log_and_the_epoch(client: Any) -> None:
    moved(client, "admit", "drain", why=", note = 'n', figures = '[]', run = 'run1'")
    assert client.mget("drain_state", "admission", "rollback_reason", "control:epoch") == [
        "drain",
        "closed",
        None,
        f"{NOW_MS}000",
    ]
    ((_, entry),) = client.xrange("control:log")
    assert [entry[name] for name in ("from", "to", "note", "figures", "run", "pin")] == [
        "admit",
        "drain",
        "n",
        "[]",
        "run1",
        "",
    ]
    assert client.xrange("audit")[-1][1]["run"] == "run1"
    run(client)
    moved(client, "drain", "admit", rollback_reason="canary_failed", pin="operator")
    assert client.xrange("audit")[-1][1]["run"] == "r"
    assert client.mget("drain_state", "admission", "rollback_reason") == ["admit", "open", "canary_failed"]
    entry = client.xrange("control:log")[-1][1]
    assert [entry[name] for name in ("note", "figures", "run", "pin")] == ["", "{}", "r", "operator"]
    client.set("control:epoch", f"{NOW_MS}500")


def test_an_epoch_only_grows_also_past_one_that_was_seen(client: Any) -> None:
    gate(client)
    move = "G.move(q, g, 'admit', { reason = 'r', actor = 'a' }) return digits(g.epoch)"
    client.set("control:epoch", f"{NOW_MS}500")
    assert worth(client, f"{FRAME} local g = G.read(q) {move}") == f"{NOW_MS}501"
    seen = f"q.seen = q.us + 900 local g = G.read(q) {move}"
    assert worth(client, f"{FRAME} {seen}") == f"{NOW_MS}901"


def adopted(client: Any, stored: str, state: str, admission: str) -> tuple[bool, dict[str, str]]:
    """Write raw keys beside a record, let them be adopted, and give the last line of the log."""
    gate(client, drain_state=stored)
    client.delete("control:log")
    client.mset({"drain_state": state, "admission": admission})
    moved = worth(client, f"{FRAME} return G.adopt(q, G.read(q))")
    entries = client.xrange("control:log")
    return moved is True, entries[-1][1] if entries else {}


def test_only_a_tightening_hand_edit_is_adopted_and_any_other_written_back(client: Any) -> None:
    for stored in ("admit", "reject_new", "drain"):
        assert adopted(client, stored, stored, "open" if stored == "admit" else "closed") == (False, {})
    for stored, state, admission, to in (
        ("admit", "drain", "open", "drain"), ("admit", "admit", "closed", "reject_new"),
        ("reject_new", "drain", "closed", "drain"), ("admit", "recovering", "closed", "reject_new"),
    ):  # fmt: skip
        moved, entry = adopted(client, stored, state, admission)
        assert (moved, entry["to"], entry["reason"], entry["pin"]) == (True, to, "hand_edit", "hand_edit")
    for stored, state, admission, wrote in (
        ("drain", "admit", "closed", "drain_state admit"), ("drain", "drain", "open", "admission open"),
        ("reject_new", "admit", "closed", "drain_state admit"),
        ("admit", "recovering", "open", "drain_state recovering"),
    ):  # fmt: skip
        moved, entry = adopted(client, stored, state, admission)
        assert (moved, entry["to"], entry["reason"], entry["pin"]) == (True, stored, "hand_edit_written_back", "")
        assert entry["note"].startswith(f"SET {wrote} was")
    client.delete("admission")
    assert worth(client, f"{FRAME} return G.adopt(q, G.read(q))") is False


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize(
    ("stored", "state", "admission"),
    [
        ("admit", "drain", "open"), ("admit", "admit", "closed"), ("reject_new", "drain", "closed"),
        ("drain", "admit", "open"), ("recovering", "drain", "closed"), ("recovering", "admit", "open"),
        ("admit", "recovering", "open"),
    ],
)  # fmt: skip
def test_after_an_adoption_the_gate_in_hand_is_the_one_that_was_stored(
    client: Any, runs: bool, stored: str, state: str, admission: str
) -> None:
    fields = {"ramp": "10"} if stored == "admit" else {"green": "1"} if stored == "recovering" else {}
    gate(
        client, drain_state=stored, limit_at="9", ok_since="3", rollback_reason="canary_failed", pin_note="n", **fields
    )
    client.mset({"drain_state": state, "admission": admission})
    if runs:
        run(client, step_at="1", owner="me", lease_end="7")
    body = "local g = G.read(q) local moved = G.adopt(q, g) return { moved, g, G.read(q) }"
    moved, in_hand, stored_now = worth(client, f"{FRAME} {body}")
    assert moved is True
    assert in_hand == stored_now


def test_a_close_says_why_where_it_pins(client: Any) -> None:
    for pin, why, note in (
        ("'lost'", "", ""),
        ("'operator'", ", note = 'n'", "n"),
        ("'operator'", "", "r"),
        ("nil", ", note = 'n'", ""),
    ):
        gate(client)
        body = (
            f"G.close(q, g, {pin}, 'lost', {{ reason = 'r', actor = 'a' {why} }})"
            if pin != "'lost'"
            else "G.pin(g, 'p')"
        )
        assert worth(client, f"{FRAME} local g = G.read(q) {body} return g.pin_note") == note


def test_a_decision_without_figures_has_an_empty_object(client: Any) -> None:
    worth(client, f"{FRAME} G.write_decision(q, 'a', 'r') return 1")
    assert client.hgetall("control:decision") == {"action": "a", "reason": "r", "at": str(NOW_MS), "figures": "{}"}
    worth(client, f"{FRAME} G.write_decision(q, 'a', 'r', '[]') return 1")
    assert client.hget("control:decision", "figures") == "[]"


def test_the_gate_in_hand_reads_as_it_was_moved(client: Any) -> None:
    for start, state, admission in (("admit", "drain", "closed"), ("drain", "admit", "open")):
        gate(client, drain_state=start)
        move = f"g.drain_state = '{state}' G.move(q, g, '{start}', {{ reason = 'r', actor = 'a' }})"
        found = "{ g.raw_state, g.raw_admission, G.effective(g) }"
        assert worth(client, f"{FRAME} local g = G.read(q) {move} return {found}") == [state, admission, state]


ROLLED_BACK = {"drain_state": "drain", "rollback_reason": "duplicate_side_effect", "pin": "rolled_back"}


def audited(client: Any, counts: dict[str, int], runbook: str = "", **changes: str) -> tuple[bool, str | None]:
    """Roll back for duplicates, and give whether the gate moved and which run is live."""
    client.flushall()
    gate(client, **ROLLED_BACK | changes)
    client.hset("control:duplicates", mapping=counts)
    if runbook:
        run(client, runbook=runbook)
    body = "G.roll_back_duplicates(q, G.read(q), { reason = 'r', actor = 'a' })"
    moves = worth(client, f"{FRAME} q.a.audit_run_id = 'audit' return {body}")
    return moves is True, client.get("lock:run")


def test_duplicates_roll_back_once_and_open_one_audit(client: Any) -> None:
    old, new = {"confirmed": 2, "audited": 2}, {"confirmed": 3, "audited": 2}
    audit, recovery = "rollback-and-audit", "drain-and-recover"
    assert audited(client, old) == (False, None)
    assert audited(client, old, audit) == (False, "r")
    assert audited(client, old, recovery) == (True, "audit")
    assert client.hget("run:r", "state") == "superseded"
    assert audited(client, new) == (True, "audit")
    assert client.hget("control:duplicates", "audited") == "3"
    assert audited(client, new, audit) == (True, "r")
    for changes in ({"pin": "operator"}, {"rollback_reason": "canary_failed"}, {"drain_state": "reject_new"}):
        assert audited(client, old, **changes) == (True, None)
        assert audited(client, old, audit, **changes) == (True, "r")


def test_other_code_in_the_library_s_place_is_written_down_where_there_is_a_queue(client: Any) -> None:
    asked = "q.a = { was = 'a', now = 'b', actor = 'ada', reason = 'why' }"
    assert worth(client, f"{FRAME} {asked} return commands.library_replaced(q).answer") == "unreadable"
    assert client.exists("control:log") == 0
    gate(client)
    assert worth(client, f"{FRAME} {asked} return commands.library_replaced(q).answer") == "moved"
    assert client.xrange("control:log")[-1][1]["note"] == "a -> b: why"
