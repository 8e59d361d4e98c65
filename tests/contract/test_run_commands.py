"""What asks for a run and what its executor does with it, each command by itself at its bounds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gate_frame import NOW_MS, run
from tests.run_frame import NEXT_FENCE, OPENING, asked, recovering, stands, step


def opened(client: Any, more: str = "", **changes: Any) -> tuple[str, str]:
    """Ask for a run, and give the answer and why."""
    answer = asked(client, "open_run", OPENING | changes, more)
    return answer["answer"], answer["why"]


def test_a_machine_s_run_is_opened_where_nothing_stands_against_it(client: Any) -> None:
    stands(client)
    assert opened(client) == ("moved", "")
    assert client.hmget("control:gate", "drain_state", "pin") == ["drain", ""]
    assert opened(client) == ("moved", ""), "the same request again"
    assert opened(client, run="other") == ("attached", "")
    assert asked(client, "open_run", OPENING | {"run": "other"})["run"] == "new"
    stands(client)
    assert opened(client, confirmed=False) == ("waiting", "the figures do not confirm it")
    stands(client, drain_state="drain")
    assert opened(client, confirmed=False) == ("moved", "")
    stands(client, pin="operator")
    assert opened(client) == ("suppressed", "the gate is pinned: operator")
    stands(client)
    client.hset("control:duplicates", "confirmed", 1)
    assert opened(client)[0] == "duplicates"
    assert opened(client, trigger="person")[0] == "duplicates"
    stands(client, restoring="x")
    assert opened(client) == ("refused", "a restore is not complete")
    stands(client, since="x")
    assert opened(client) == ("unreadable", "the gate is unreadable")
    stands(client)
    assert opened(client, "q.seen = 9") == ("unreadable", "the gate is behind")


def test_an_opening_that_did_not_hold_is_left_to_the_controller(client: Any) -> None:
    for state, ago, answer in (("admit", 59, "suppressed"), ("admit", 60, "moved"), ("drain", 59, "moved")):
        stands(client, drain_state=state, reopened_at=NOW_MS - ago)
        assert opened(client)[0] == answer
    stands(client, reopened_at=NOW_MS - 59)
    assert opened(client, trigger="person")[0] == "moved"


def test_a_refusal_pins_a_gate_that_is_in_drain_and_moves_no_other(client: Any) -> None:
    for state, pin in (("admit", ""), ("drain", "run_refused")):
        stands(client, drain_state=state)
        client.set("kill", "x")
        assert opened(client) == ("refused", "kill_switch")
        assert client.hmget("control:gate", "drain_state", "pin") == [state, pin]
        assert client.hget("counters", "runs_refused:kill_switch") == "1"
    stands(client)
    client.set("kill", "x")
    assert opened(client, trigger="person")[0] == "moved"


def test_what_holds_over_all_queues_is_asked_for_apart(client: Any) -> None:
    stands(client)
    assert asked(client, "open_run", OPENING | {"permit": "ask"})["limits"] == {
        "limit": 2,
        "storm_queues": 5,
        "storm_ms": 300_000,
    }
    assert opened(client, permit="ask") == ("permit", "")
    assert opened(client, permit="storm") == ("refused", "storm")
    client.set("kill", "x")
    assert opened(client, permit="ask") == ("refused", "kill_switch")
    client.delete("kill")
    assert opened(client, permit="granted") == ("moved", "")


def test_a_person_s_run_waits_for_a_live_one(client: Any) -> None:
    stands(client, drain_state="drain")
    run(client)
    assert opened(client, trigger="person") == ("run_live", "run r is live")
    assert opened(client, runbook="rollback-and-audit")[0] == "refused"
    client.hset("control:duplicates", "confirmed", 1)
    assert opened(client, runbook="rollback-and-audit")[0] == "moved"
    assert client.hget("run:r", "state") == "superseded"
    assert opened(client, runbook="rollback-and-audit", run="again")[0] == "attached"


def claim(client: Any, executor: str = "me", fence: str = "5", run_id: str = "r") -> dict[str, Any]:
    answer: dict[str, Any] = asked(client, "claim_run", {"executor": executor, "run": run_id, "fence": fence})
    return answer


def test_a_run_is_taken_over_at_the_very_instant_its_lease_ends(client: Any) -> None:
    stands(client, drain_state="drain")
    assert claim(client) == {"found": False, "owned": False, "besides": {}}
    for end, owned in ((NOW_MS + 1, False), (NOW_MS, True), ("x", True)):
        run(client, owner="you", lease_end=end, fence="5")
        answer = claim(client)
        assert (answer["found"], answer["owned"], answer.get("fence")) == (
            True,
            owned,
            f"{NOW_MS}000" if owned else None,
        )
    assert client.hmget("run:r", "owner", "lease_end") == ["me", str(NOW_MS + 20)]
    assert [line["phase"] for _, line in client.xrange("run:r:journal")] == ["claimed", "claimed"]


def test_an_owner_renews_without_a_new_fence_and_only_its_own(client: Any) -> None:
    stands(client, drain_state="drain")
    held: dict[str, Any] = {"owner": "me", "lease_end": NOW_MS + 1, "fence": "5"}
    run(client, **held)
    assert claim(client)["fence"] == "5"
    assert client.exists("run:r:journal") == 0
    for other in ({"executor": "you"}, {"fence": "6"}, {"run_id": "s"}):
        run(client, **held)
        assert claim(client, **other)["owned"] is False
    assert asked(client, "claim_run", {"executor": "me", "run": "r", "fence": "5"}, "q.s = nil")["found"] is False


def test_a_recovery_begins_in_drain_with_the_time_that_its_proof_may_take(client: Any) -> None:
    for more, takes in (("", 70), ("q.s.classes.c.canary = ''", 90)):
        recovering(client, drain_state="drain", canary_ok=1, canary_failed=1)
        assert step(client, "recover", more) == "moved"
        assert client.hmget("control:gate", "drain_state", "limit_at", "canary_ok", "canary_failed", "green") == [
            "recovering", str(NOW_MS + takes), "0", "0", "0",
        ]  # fmt: skip
    assert step(client, "recover") == "refused"


def test_green_needs_its_canaries_or_a_person_s_word(client: Any) -> None:
    for ok, word, answer in ((1, {}, "refused"), (2, {}, "moved"), (0, {"approved_by": "ada"}, "moved")):
        recovering(client, green="0", canary_ok=ok)
        assert step(client, "green", **word) == answer
    assert step(client, "green") == "refused"
    recovering(client, drain_state="drain", green="0")
    assert step(client, "green") == "refused"


def test_a_reopening_needs_green_no_duplicate_and_the_run_s_gate(client: Any) -> None:
    recovering(client)
    assert step(client, "reopen") == "moved"
    assert client.hmget("control:gate", "drain_state", "ramp", "reopened_at", "limit_at") == [
        "admit", "10", str(NOW_MS), str(NOW_MS + 20),
    ]  # fmt: skip
    assert step(client, "reopen") == "refused"
    recovering(client, green="0")
    assert step(client, "reopen") == "refused"
    recovering(client)
    client.sadd("queue:pairs", "c:-")
    client.zadd("queue:fifo:c:-", {"old": NOW_MS - 15_000})
    assert step(client, "reopen") == "refused"
    recovering(client)
    client.hset("control:duplicates", "confirmed", 1)
    assert step(client, "reopen") == "refused"


def ramping(client: Any, percent: int, limit_at: int = NOW_MS, **fields: Any) -> None:
    stands(client, ramp=percent, limit_at=limit_at, rollback_reason="canary_failed", **fields)
    run(client)


def test_a_ramp_grows_at_the_very_end_of_a_step_and_ends_at_its_last(client: Any) -> None:
    for percent, limit_at, answer, after in (
        (10, NOW_MS, "moved", "50"), (10, NOW_MS + 1, "refused", "10"), (50, NOW_MS, "moved", "100"),
        (60, NOW_MS, "moved", "100"), (100, NOW_MS, "refused", "100"),
    ):  # fmt: skip
        ramping(client, percent, limit_at)
        assert step(client, "ramp") == answer
        assert client.hget("control:gate", "ramp") == after
    for percent, limit_at, answer in ((99, NOW_MS, "refused"), (100, NOW_MS + 1, "refused"), (100, NOW_MS, "moved")):
        ramping(client, percent, limit_at)
        assert step(client, "ramp_end") == answer
    assert client.hmget("control:gate", "drain_state", "ramp", "rollback_reason") == ["admit", "", ""]
    assert client.hget("run:r", "state") == "succeeded"
    ramping(client, 10)
    client.hset("control:duplicates", "confirmed", 1)
    assert step(client, "ramp") == "refused"
    recovering(client)
    assert [step(client, "ramp"), step(client, "ramp_end")] == ["refused", "refused"]


def test_a_step_rolls_back_for_one_of_the_four_reasons_alone(client: Any) -> None:
    recovering(client)
    assert step(client, "rollback", reason="odd") == "refused"
    assert step(client, "rollback") == "refused"
    assert step(client, "rollback", reason="canary_failed") == "moved"
    assert client.hmget("control:gate", "drain_state", "pin_note") == ["drain", "canary_failed"]
    effects = ("recover", "green", "canary", "snapshot")
    assert [step(client, effect, fence=NEXT_FENCE) for effect in effects] == ["refused"] * 4
    assert step(client, "finish", fence=NEXT_FENCE, note="hooks done") == "moved"
    assert client.hmget("run:r", "state", "ended_why") == ["rolled_back", "hooks done"]


def test_a_live_recovery_is_not_finished_and_an_audit_succeeds(client: Any) -> None:
    recovering(client)
    assert step(client, "finish") == "refused"
    stands(client, drain_state="drain")
    run(client, runbook="rollback-and-audit")
    assert step(client, "finish") == "moved"
    assert client.hmget("run:r", "state", "ended_why") == ["succeeded", "succeeded"]


def test_burning_down_ends_only_when_green(client: Any) -> None:
    for fields, answer in (({}, "moved"), ({"green": "0"}, "refused"), ({"drain_state": "drain"}, "refused")):
        recovering(client, **fields)
        assert step(client, "burned_down") == answer
    recovering(client)
    step(client, "burned_down")
    assert client.hget("control:gate", "limit_at") == str(NOW_MS + 40)


def test_a_canary_is_put_once_for_a_declared_class_before_green(client: Any) -> None:
    canary: dict[str, Any] = {"class": "c", "n": 1, "payload": "{}"}
    recovering(client, green="0")
    assert [step(client, "canary", **canary), step(client, "canary", **canary)] == ["moved", "unchanged"]
    assert client.zrange("queue:canary", 0, -1) == ["canary:r:c:1"]
    assert step(client, "canary", **canary | {"class": "odd"}) == "unchanged"
    for fields in ({}, {"drain_state": "drain", "green": "0"}):
        recovering(client, **fields)
        assert step(client, "canary", **canary) == "refused"


def test_a_drain_by_class_says_how_many_it_ended(client: Any) -> None:
    recovering(client, drain_state="drain")
    assert step(client, "drain", keep_ms=0) == "unchanged"
    client.sadd("queue:pairs", "c:-")
    client.hset("job:x", mapping={"state": "ready", "class": "c", "deadline": NOW_MS})
    for key in ("queue:fifo:c:-", "queue:ready:c:-"):
        client.zadd(key, {"x": NOW_MS})
    assert step(client, "drain", keep_ms=0) == "unchanged"
    assert step(client, "drain", keep_ms=1) == "moved"
    assert client.xrange("run:r:journal")[-1][1]["text"] == "1 jobs expired"


def test_an_endpoint_keeps_the_one_before_as_the_last_good(client: Any) -> None:
    recovering(client)
    step(client, "endpoint", endpoint="a")
    assert client.hmget("control:endpoint", "current", "last_good") == ["a", ""]
    step(client, "endpoint", endpoint="b")
    assert client.hmget("control:endpoint", "current", "last_good") == ["b", "a"]


def test_a_request_is_carried_out_once_and_only_for_the_fence(client: Any) -> None:
    recovering(client, drain_state="drain")
    assert step(client, "recover", fence="4") == "stale"
    assert step(client, "recover", run="s") == "stale"
    assert client.hget("counters", "fenced_steps") == "2"
    assert [step(client, "recover", request="one"), step(client, "recover", request="one")] == ["moved", "moved"]
    assert len(client.xrange("control:log")) == 1
    lines = client.xlen("run:r:journal")
    assert step(client, "no such effect", seq=9) == "refused"
    assert (client.xlen("run:r:journal"), client.hget("run:r", "step")) == (lines, "2")
    client.hset("control:gate", "since", "x")
    assert step(client, "recover") == "unreadable"


@pytest.mark.parametrize(
    ("phase", "kept"), [("started", [str(NOW_MS), None]), ("done", [None, "7"]), ("other", ["1", "7"])]
)
def test_a_step_s_time_runs_from_its_start_to_its_end(client: Any, phase: str, kept: list[str | None]) -> None:
    recovering(client)
    client.hset("run:r", mapping={"step_at": 1, "step_held_ms": 7})
    assert step(client, "journal", phase=phase) == "moved"
    assert client.hmget("run:r", "step_at", "step_held_ms")[:1] == kept[:1]
    assert client.hmget("run:r", "step", "verb") == ["2", "v"]


def test_a_held_run_only_fails_proves_itself_and_says_what_became_of_it(client: Any) -> None:
    canary: dict[str, Any] = {"class": "c", "n": 1, "payload": "{}"}
    recovering(client, green="0")
    client.hset("run:r", "held_until", NOW_MS + 9)
    assert [step(client, "green", approved_by="ada"), step(client, "snapshot")] == ["held", "held"]
    phases = ("started", "done", "intent", "outcome")
    assert [step(client, "journal", phase=phase) for phase in phases] == ["held", "held", "held", "moved"]
    assert step(client, "canary", **canary) == "moved"
    assert step(client, "rollback", reason="canary_failed") == "moved"
    assert step(client, "finish", fence=NEXT_FENCE) == "moved"


def test_an_endpoint_is_set_once_and_given_back_only_by_the_run_that_set_it(client: Any) -> None:
    recovering(client)
    assert [step(client, "endpoint", endpoint="a"), step(client, "endpoint", endpoint="a")] == ["moved", "unchanged"]
    client.hset("control:endpoint", "last_good", "good")
    step(client, "rollback", reason="canary_failed")
    back = {"fence": NEXT_FENCE}
    assert [step(client, "restore_endpoint", **back), step(client, "restore_endpoint", **back)] == [
        "moved",
        "unchanged",
    ]
    assert client.hmget("control:endpoint", "current", "run") == ["good", ""]
    client.delete("control:endpoint")
    client.hset("control:endpoint", "run", "r")
    assert step(client, "restore_endpoint", **back) == "moved"
    assert client.hget("control:endpoint", "current") == ""


def test_a_rollback_whose_hook_failed_never_reads_as_a_clean_one(client: Any) -> None:
    """How effects.finish ends it, for the fence of owned_run() alone."""
    for degraded, state in ((True, "rolled_back_degraded"), (False, "rolled_back")):
        recovering(client)
        step(client, "rollback", reason="canary_failed")
        assert step(client, "finish", fence="5", degraded=degraded) == "stale"
        assert step(client, "finish", fence=NEXT_FENCE, degraded=degraded) == "moved"
        assert client.hget("run:r", "state") == state
    stands(client, drain_state="drain")
    run(client, runbook="rollback-and-audit")
    assert step(client, "finish", degraded=True) == "moved"
    assert client.hget("run:r", "state") == "succeeded"
