"""What a person asks of a run: a word for its step, a hold, the list of runs, the kill switch; each at its bounds."""

from __future__ import annotations

from typing import Any

from tests.gate_frame import NOW_MS, run
from tests.run_frame import OPENING, asked, recovering, stands


def approve(client: Any, name: str = "fix", run_id: str = "r", more: str = "") -> str:
    word = {"run": run_id, "step": name, "actor": "ada", "reason": "seen"}
    return str(asked(client, "approve", word, more)["answer"])


def test_a_word_counts_once_for_the_step_that_waits(client: Any) -> None:
    recovering(client)
    client.hset("run:r", mapping={"verb": "fix", "step": "3"})
    client.xadd("run:r:journal", {"phase": "done", "seq": "2"})
    client.xadd("run:r:journal", {"phase": "started", "seq": "3"})
    assert approve(client, run_id="s") == "gone"
    assert approve(client, "reopen") == "not_waiting"
    assert [approve(client), approve(client)] == ["moved", "unchanged"]
    assert client.hgetall("approval:r") == {"3 fix": "ada: seen"}
    client.xadd("run:r:journal", {"phase": "done", "seq": "3"})
    assert approve(client) == "not_waiting"
    # The same verb at another place waits for a word of its own.
    client.hset("run:r", "step", "4")
    assert [approve(client), approve(client)] == ["moved", "unchanged"]
    assert client.hgetall("approval:r") == {"3 fix": "ada: seen", "4 fix": "ada: seen"}
    # A word for a place counts there alone.
    client.hset("run:r", "step", "5")
    assert [approve(client, name) for name in ("4 fix", "5 canary", "5 fix")] == ["not_waiting", "not_waiting", "moved"]
    client.hdel("run:r", "step")
    assert approve(client) == "not_waiting"
    client.hset("run:r", "state", "rolling_back")
    assert approve(client) == "gone"


def test_no_word_takes_the_place_of_declared_canaries(client: Any) -> None:
    for more, answer in (("", "not_waiting"), ("q.s.classes.c.canary = ''", "moved"), ("q.s = nil", "moved")):
        recovering(client)
        client.delete("approval:r")
        client.hset("run:r", "verb", "canary")
        assert approve(client, "canary", more=more) == answer


def test_a_word_in_an_audit_acknowledges_what_is_known(client: Any) -> None:
    for runbook, verb, acknowledged in (
        ("rollback-and-audit", "approve", "2"), ("rollback-and-audit", "audit", None),
        ("drain-and-recover", "approve", None),
    ):  # fmt: skip
        stands(client, drain_state="drain")
        run(client, runbook=runbook, verb=verb)
        client.hset("control:duplicates", "confirmed", 2)
        assert approve(client, verb) == "moved"
        assert client.hget("control:duplicates", "acknowledged") == acknowledged


def test_runs_are_listed_newest_first_and_those_that_are_gone_left_out(client: Any) -> None:
    for name, at, key in (
        ("a", 5, "recent"),
        ("b", 7, "beside"),
        ("c", 5, "beside"),
        ("d", 6, "recent"),
        ("gone", 9, "recent"),
    ):
        client.zadd(f"runs:{key}", {name: at})
        if name != "gone":
            client.hset(f"run:{name}", mapping={"runbook": "x", "started_at": at})

    def names(arguments: dict[str, Any]) -> list[str]:
        return [row["id"] for row in asked(client, "runs", arguments)["runs"]]

    assert names({}) == ["b", "d", "c", "a"]
    assert names({"limit": 3}) == ["b", "d", "c"]
    client.hset("run:b", "started_at", "x")
    assert names({}) == ["d", "c", "a", "b"]
    assert asked(client, "run", {"run": "gone"}) == {"found": False}
    assert asked(client, "run", {"run": "a"})["found"] is True


def test_the_kill_switch_rolls_a_live_recovery_back_and_writes_itself_down(client: Any) -> None:
    def switch(on: bool) -> list[Any]:
        asked(client, "kill_switch", {"on": on, "actor": "ada", "reason": "why"})
        last = client.xrange("control:log")[-1][1]
        return [
            last["reason"],
            last["from"],
            last["to"],
            client.get("kill"),
            client.hget("control:gate", "rollback_reason"),
        ]

    stands(client)
    assert switch(True) == ["kill_switch_on", "admit", "admit", "ada: why", ""]
    assert switch(False) == ["kill_switch_off", "admit", "admit", None, ""]
    recovering(client)
    assert switch(False) == ["kill_switch_off", "recovering", "recovering", None, ""]
    assert switch(True) == ["kill_switch_on", "recovering", "drain", "ada: why", "manual_operator_hold"]
    client.hset("control:gate", "since", "x")
    asked(client, "kill_switch", {"on": False, "actor": "ada", "reason": "why"})
    assert (client.get("kill"), len(client.xrange("control:log"))) == (None, 2)


def held(client: Any, command: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = asked(client, command, {"run": "r", "actor": "ada", "reason": "why"} | arguments)
    return answer


def test_a_hold_lasts_as_long_as_asked_and_no_longer_than_it_may(client: Any) -> None:
    """Until when is what R.held_until reads."""
    recovering(client, limit_at=NOW_MS + 5)
    for none in ("x", "0"):
        client.hset("run:r", "held_until", none)
        assert held(client, "resume") == {"answer": "unchanged"}
    for ms, most, lasts in ((5, None, 5), (0, None, 1_800_000), (0, 9, 9), (10, 9, 9), (9, 9, 9)):
        more = "" if most is None else f"q.s.timings.hold_max_ms = {most}"
        answer = asked(client, "hold", {"run": "r", "actor": "ada", "reason": "why", "ms": ms}, more)
        assert answer == {"answer": "moved", "until": str(NOW_MS + lasts)}
    assert client.hmget("run:r", "held_since", "held_by") == [str(NOW_MS), "ada: why"]
    client.hset("run:r", mapping={"held_since": NOW_MS - 7, "step_held_ms": 3})
    held(client, "hold", ms=5)
    assert client.hget("run:r", "held_since") == str(NOW_MS - 7)
    assert held(client, "resume") == {"answer": "moved"}
    assert client.hmget("run:r", "step_held_ms", "held_until", "held_since") == ["10", None, None]
    assert client.hget("control:gate", "limit_at") == str(NOW_MS + 12)


def test_a_hold_that_has_ended_is_the_run_s_rollback(client: Any) -> None:
    for until, answer, state in ((NOW_MS + 1, "moved", "recovering"), (NOW_MS, "expired", "drain")):
        recovering(client)
        client.hset("run:r", mapping={"held_until": until, "held_since": "x"})
        assert held(client, "resume")["answer"] == answer
        assert client.hget("control:gate", "drain_state") == state
    assert client.hget("control:gate", "pin_note") == "the hold has expired: "


def test_only_a_live_recovery_of_that_name_is_held(client: Any) -> None:
    recovering(client)
    assert held(client, "hold", run="s", ms=1) == {"answer": "gone"}
    run(client, state="rolling_back")
    assert held(client, "hold", ms=1) == {"answer": "gone"}
    assert held(client, "resume") == {"answer": "gone"}
    client.hset("control:gate", "since", "x")
    assert held(client, "hold", ms=1) == {"answer": "unreadable"}


def test_a_hold_without_a_limit_leaves_none_and_a_damaged_start_takes_no_time(client: Any) -> None:
    for limit_at in (0, 5):
        recovering(client, limit_at=limit_at)
        client.hset("run:r", mapping={"held_until": NOW_MS + 9, "held_since": "x"})
        assert held(client, "resume") == {"answer": "moved"}
        assert client.hget("run:r", "step_held_ms") == "0"
        assert client.hget("control:gate", "limit_at") == str(limit_at)
        client.hset("run:r", mapping={"held_until": NOW_MS + 9, "held_since": NOW_MS - 3})
        assert held(client, "resume") == {"answer": "moved"}
        assert client.hget("control:gate", "limit_at") == str(limit_at and limit_at + 3)
    client.hset("run:r", "held_since", NOW_MS - 3)
    held(client, "hold", ms=1)
    assert client.hget("run:r", "held_since") == str(NOW_MS), "of a hold that was let go"


def test_the_gate_s_log_is_read_newest_first_up_to_a_limit(client: Any) -> None:
    stands(client)
    for on in (True, False):
        asked(client, "kill_switch", {"on": on, "actor": "ada", "reason": "why"})
    reasons = [entry["reason"] for entry in asked(client, "gate_log", {})["entries"]]
    assert reasons == ["kill_switch_off", "kill_switch_on"]
    assert [entry["reason"] for entry in asked(client, "gate_log", {"limit": 1})["entries"]] == reasons[:1]


def test_the_kill_switch_ends_the_runs_beside_only_when_it_is_put_on(client: Any) -> None:
    stands(client)
    asked(client, "open_run", OPENING | {"runbook": "look", "trigger": "person"})
    for on, state in ((False, "running"), (True, "aborted")):
        asked(client, "kill_switch", {"on": on, "actor": "ada", "reason": "why"})
        assert client.hget("run:new", "state") == state


def test_an_endpoint_that_was_never_set_is_empty(client: Any) -> None:
    stands(client)
    assert asked(client, "endpoint", {}) == {"current": "", "last_good": ""}
    client.hset("control:endpoint", mapping={"current": "a", "last_good": "b"})
    assert asked(client, "endpoint", {}) == {"current": "a", "last_good": "b"}
