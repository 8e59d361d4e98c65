"""What a named person asks of the gate, each order in each state that makes a difference, on a real server."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from tests.gate_frame import NOW_MS, run
from tests.run_frame import asked, recovering, stands


def order(client: Any, name: str, more: str = "", **changes: Any) -> str:
    """Carry out an order, and give the answer."""
    answer = asked(client, "order", {"order": name, "actor": "ada", "reason": "why"} | changes, more)
    return str(answer["answer"])


def record(client: Any, *names: str) -> list[str]:
    found: list[str] = client.hmget("control:gate", *(names or ("drain_state", "pin", "rollback_reason")))
    return found


def last(client: Any, *names: str) -> list[str]:
    entry = client.xrange("control:log")[-1][1]
    return [entry[name] for name in names]


def duplicates(client: Any, confirmed: int = 2) -> None:
    client.hset("control:duplicates", "confirmed", confirmed)


def test_an_open_gate_has_nothing_left_of_what_closed_it(client: Any) -> None:
    stands(
        client, drain_state="drain", pin="rolled_back", rollback_reason="canary_failed", left_reject_at=5, dwell_ms=160,
    )  # fmt: skip
    duplicates(client)
    assert order(client, "open") == "moved"
    names = ("drain_state", "pin", "rollback_reason", "left_reject_at", "dwell_ms", "reopened_at")
    assert record(client, *names) == ["admit", "", "", "0", "100", str(NOW_MS)]
    assert last(client, "reason", "actor", "note") == [
        "operator_open",
        "ada",
        "why (acknowledges 2 confirmed duplicates)",
    ]
    assert client.hmget("control:duplicates", "acknowledged", "by") == ["2", "ada"]


def test_a_live_run_is_ended_only_where_that_is_said(client: Any) -> None:
    recovering(client)
    assert [order(client, "open"), order(client, "open_end_run")] == ["run_live", "moved"]
    assert (client.hget("run:r", "state"), client.exists("lock:run")) == ("aborted", 0)
    stands(client, drain_state="drain")
    assert order(client, "open_end_run") == "moved"


def test_closing_pins_unless_told_otherwise(client: Any) -> None:
    for name, state in (("drain", "drain"), ("reject", "reject_new"), ("hold", "admit")):
        for pin, wanted in ((None, "operator"), (True, "operator"), (False, "operator" if name == "hold" else "")):
            stands(client)
            asked_pin: dict[str, Any] = {} if pin is None else {"pin": pin}
            assert order(client, name, **asked_pin) == "moved"
            assert record(client, "drain_state", "pin", "pin_note") == [state, wanted, "why" if wanted else ""]
            assert last(client, "reason", "note") == [f"operator_{name}", "why"]


def test_duplicates_pin_whatever_was_asked(client: Any) -> None:
    for name in ("drain", "reject"):
        stands(client)
        duplicates(client)
        assert order(client, name, pin=False) == "moved"
        assert record(client, "pin") == ["operator"]
    stands(client, drain_state="drain")
    duplicates(client)
    assert order(client, "reject") == "duplicates"
    assert order(client, "drain") == "moved"
    assert order(client, "hold") == "moved"
    assert record(client, "drain_state") == ["drain"]


def test_a_live_recovery_is_rolled_back_by_whatever_closes(client: Any) -> None:
    for name in ("drain", "reject", "hold", "abort"):
        recovering(client)
        assert order(client, name) == "moved"
        assert record(client) == ["drain", "rolled_back", "manual_operator_hold"]


def test_a_run_that_rolls_back_or_audits_is_left_alone(client: Any) -> None:
    for changes in ({"state": "rolling_back"}, {"runbook": "rollback-and-audit"}):
        stands(client, drain_state="drain", pin="rolled_back")
        run(client, **changes)
        answers = [order(client, name) for name in ("drain", "reject", "hold", "release")]
        assert answers == ["unchanged", "run_live", "unchanged", "run_live"]
        assert order(client, "abort") == ("moved" if "runbook" in changes else "unchanged")
    assert client.hget("run:r", "state") == "aborted"


def test_a_hold_in_a_recovery_without_its_run_closes(client: Any) -> None:
    for name, state in (("hold", "drain"), ("reject", "reject_new")):
        stands(client, drain_state="recovering")
        assert order(client, name) == "moved"
        assert record(client, "drain_state") == [state]


def test_rejecting_begins_the_dwell_anew(client: Any) -> None:
    stands(client, ramp="10", ok_since=5, dwell_ms=160, rollback_reason="canary_failed")
    order(client, "reject", pin=False)
    assert record(client, "ramp", "ok_since", "dwell_ms", "rollback_reason") == ["", "0", "100", ""]
    stands(client, ramp="10", ok_since=5, dwell_ms=160, rollback_reason="canary_failed")
    order(client, "hold")
    assert record(client, "ramp", "dwell_ms", "rollback_reason") == ["10", "160", "canary_failed"]


def test_a_pin_is_released_and_the_wait_for_a_webhook_begins(client: Any) -> None:
    for state, reason in (("drain", "canary_failed"), ("reject_new", "")):
        stands(client, drain_state=state, pin="operator", rollback_reason="canary_failed")
        assert order(client, "release") == "moved"
        assert record(client, "drain_state", "pin", "rollback_reason", "since") == [state, "", reason, str(NOW_MS)]
        assert order(client, "release") == "unchanged"
    stands(client, drain_state="drain", pin="operator")
    duplicates(client)
    assert order(client, "release") == "duplicates"


def test_duplicates_are_acknowledged_once(client: Any) -> None:
    stands(client)
    assert order(client, "acknowledge") == "unchanged"
    duplicates(client)
    ask = {"order": "acknowledge", "actor": "ada", "reason": "why"}
    assert asked(client, "order", ask)["acknowledged"] == 2
    assert last(client, "reason", "note") == ["operator_acknowledge", "why (acknowledges 2 confirmed duplicates)"]
    assert asked(client, "order", ask)["answer"] == "unchanged"
    assert order(client, "abort") == "unchanged"
    assert client.xlen("control:log") == 1


def test_a_word_that_is_meant_for_another_gate_is_stale(client: Any) -> None:
    """A gate that moved, or that has one more duplicate, is not the one that the person saw."""
    stands(client, drain_state="drain", pin="operator")
    for seen, answer in (("6/0", "stale"), ("7/1", "stale"), ("7/0", "moved")):
        assert order(client, "release", seen=seen) == answer
        assert record(client, "pin") == ["" if answer == "moved" else "operator"]
    stands(client)
    duplicates(client)
    for seen, answer in (("7/1", "stale"), ("7/2", "moved")):
        assert order(client, "acknowledge", seen=seen) == answer
    stands(client, drain_state="drain", pin="operator")
    assert [order(client, "hold", seen="6/0"), order(client, "release", seen="")] == ["moved", "moved"]


def test_half_a_queue_is_not_opened(client: Any) -> None:
    answers = {}
    for name in ("open", "open_end_run", "reject", "release", "drain", "hold", "abort"):
        stands(client, drain_state="drain", pin="restored", restoring="x")
        answers[name] = order(client, name)
    loosening = dict.fromkeys(("open", "open_end_run", "reject", "release"), "restoring")
    assert answers == loosening | {"drain": "moved", "hold": "moved", "abort": "unchanged"}


def test_an_order_that_is_none_is_an_error(client: Any) -> None:
    """What carry_out() does in the end."""
    stands(client, drain_state="drain", pin="operator")
    with pytest.raises(redis.ResponseError, match="unknown order odd"):
        order(client, "odd")
    assert record(client, "pin") == ["operator"]


def test_only_what_makes_it_whole_is_asked_of_a_gate_that_cannot_be_read(client: Any) -> None:
    """What close() does first, and open()."""
    for name, answer in (
        ("open", "moved"), ("drain", "moved"), ("reject", "moved"), ("hold", "moved"), ("open_end_run", "moved"),
        ("release", "unreadable"), ("abort", "unreadable"), ("acknowledge", "unreadable"),
    ):  # fmt: skip
        stands(client, window="x")
        client.hset("control:duplicates", "confirmed", "x")
        assert order(client, name) == answer
        assert (record(client, "window") == ["0"]) is (answer == "moved")
        assert (client.hget("control:duplicates", "confirmed") == "x") is (answer != "moved")
        if name in {"drain", "reject", "hold"}:
            assert record(client, "drain_state", "pin") == ["drain", "operator"]
    stands(client)
    assert order(client, "open", "q.s = nil") == "unreadable"
    client.flushall()
    assert order(client, "open") == "unreadable"


def test_a_hand_edit_is_adopted_before_an_order_and_the_answer_names_the_run(client: Any) -> None:
    stands(client)
    client.set("drain_state", "drain")
    assert order(client, "release") == "moved"
    assert [entry["reason"] for _, entry in client.xrange("control:log")] == ["hand_edit", "operator_release"]
    recovering(client)
    answer = asked(client, "order", {"order": "drain", "actor": "ada", "reason": "why"})
    assert (answer["run"], answer["acknowledged"], answer["drain_state"], answer["pin"]) == (
        "r",
        0,
        "drain",
        "rolled_back",
    )
    stands(client)
    assert asked(client, "order", {"order": "drain", "actor": "ada", "reason": "why"})["run"] == ""
