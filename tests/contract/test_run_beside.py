"""Runs beside the one that holds the lock: what opens one, what it may do, and how it ends, command by command."""

from __future__ import annotations

from typing import Any

from tests.gate_frame import NOW_MS
from tests.run_frame import NEXT_FENCE, OPENING, asked, stands, step


def beside(client: Any, more: str = "", **changes: Any) -> tuple[str, str, str]:
    """Ask for a run that holds no lock, and give the answer, the run and why."""
    answer = asked(client, "open_run", OPENING | {"runbook": "look"} | changes, more)
    return answer["answer"], answer["run"], answer["why"]


def test_a_run_beside_is_opened_where_nothing_stands_against_it(client: Any) -> None:
    stands(client)
    assert beside(client, confirmed=False) == ("waiting", "", "the figures do not confirm it")
    assert beside(client, run="one") == ("moved", "one", "")
    assert beside(client, run="one") == ("moved", "one", ""), "the same request again"
    assert beside(client, run="two") == ("attached", "one", "")
    assert beside(client, run="two", trigger="person") == ("run_live", "one", "run one is live")
    assert client.hmget("control:gate", "drain_state", "pin") == ["admit", ""]
    client.set("kill", "x")
    assert beside(client, runbook="other") == ("refused", "", "kill_switch")
    assert beside(client, runbook="other", run="three", trigger="person")[0] == "moved"
    stands(client, pin="operator")
    assert beside(client) == ("suppressed", "", "the gate is pinned: operator")
    assert beside(client, trigger="person") == ("moved", "new", "")


def test_a_runbook_has_a_name_that_a_key_can_hold(client: Any) -> None:
    for name, answer in (
        ("a" * 60, "moved"),
        ("a" * 61, "refused"),
        ("A", "refused"),
        ("a b", "refused"),
        ("a-9", "moved"),
    ):
        stands(client)
        assert beside(client, runbook=name, trigger="person")[0] == answer
    assert beside(client, runbook="A")[2] == "no_name"


def test_there_are_not_more_runs_beside_than_may_be(client: Any) -> None:
    stands(client)
    for number in range(16):
        assert beside(client, runbook=f"book-{number}", run=f"run-{number}")[0] == "moved"
    assert beside(client, runbook="one-more") == ("refused", "", "too_many")


def aside(client: Any, effect: str, **changes: Any) -> str:
    """Commit an effect of the run beside, and give the answer."""
    return step(client, effect, run="new", fence=NEXT_FENCE, **changes)


def test_a_run_beside_moves_the_gate_only_from_admit_to_reject_new(client: Any) -> None:
    """And is owned_run() by its own fence."""
    for fields, answer, state in (
        ({}, "moved", "reject_new"), ({"ramp": "10"}, "refused", "admit"),
        ({"drain_state": "drain"}, "unchanged", "drain"),
    ):  # fmt: skip
        stands(client, **fields)
        beside(client, trigger="person")
        assert aside(client, "reject_new") == answer
        assert client.hget("control:gate", "drain_state") == state
        assert [aside(client, effect) for effect in ("recover", "rollback", "canary")] == ["refused"] * 3
        assert aside(client, "journal") == "moved"
        assert step(client, "journal", run="new", fence="1") == "stale"


def test_a_run_beside_ends_as_it_says_or_as_a_person_says(client: Any) -> None:
    for result, state in (({}, "succeeded"), ({"result": "failed"}, "failed"), ({"result": "odd"}, "running")):
        stands(client)
        beside(client, trigger="person")
        assert aside(client, "finish", **result) == ("refused" if state == "running" else "moved")
        assert client.hget("run:new", "state") == state
    abort = {"run": "new", "actor": "ada", "reason": "why"}
    assert [asked(client, "abort_beside", abort)["answer"] for _ in range(2)] == ["moved", "gone"]
    assert client.hmget("run:new", "state", "ended_by", "ended_why") == ["aborted", "ada", "why"]
    assert asked(client, "abort_beside", abort, "q.s = nil")["answer"] == "gone"
    stands(client)
    beside(client, trigger="person")
    aside(client, "finish", note="all is well")
    assert client.hget("run:new", "ended_why") == "all is well"


def test_an_executor_claims_a_run_beside_by_its_runbook(client: Any) -> None:
    stands(client)
    beside(client, trigger="person")
    claim = {"executor": "me", "run": "", "fence": ""}
    assert asked(client, "claim_run", claim)["found"] is False
    claimed = asked(client, "claim_run", claim | {"beside": "look"})
    assert (claimed["owned"], claimed["run"]["id"], claimed["besides"]) == (True, "new", ["look"])
    assert asked(client, "claim_run", claim | {"beside": "other"})["found"] is False


def forbidden(client: Any, runbook: str, more: str = "") -> str:
    """Give what would forbid a run that no person asks for."""
    found = asked(client, "asked", {"runbook": runbook, "keep_ms": 0}, more)["forbidden"]
    return str(found or "")


def test_what_would_forbid_a_run_is_told_without_asking_for_one(client: Any) -> None:
    stands(client)
    books = ("drain-and-recover", "look", "rollback-and-audit")
    assert [forbidden(client, book) for book in books] == ["", "", ""]
    client.zadd("runs:recent", {"1": NOW_MS, "2": NOW_MS, "3": NOW_MS})
    assert [forbidden(client, book) for book in books] == ["runs_per_hour", "", ""]
    client.set("kill", "x")
    assert [forbidden(client, book) for book in books] == ["kill_switch", "kill_switch", ""]
    assert forbidden(client, "look", "q.s = nil") == ""


def test_what_a_drain_would_expire_is_told_by_class_without_classes_of_nothing(client: Any) -> None:
    """As J.expiring counts it."""
    stands(client)
    client.sadd("queue:pairs", "c:-", "d:-")
    ask = {"runbook": "look", "keep_ms": 0}
    assert asked(client, "asked", ask)["expires"] == {}
    client.zadd("queue:ready:c:-", {"a": NOW_MS - 1, "b": NOW_MS, "e": NOW_MS - 2})
    client.zadd("queue:delayed:c", {"f": NOW_MS - 1})
    assert asked(client, "asked", ask)["expires"] == {"c": 3}
