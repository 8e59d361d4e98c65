"""The parts of a reading that the exporter shows, at their bounds: what it counts, ages and finds damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluicegate import functions
from sluicegate.job import Outcome
from tests.queues import ClockedQueue, OpenClockedFunction


def seen(queue: ClockedQueue) -> dict[str, Any]:
    """Give one reading as the function answers it."""
    name = functions.function_name("observe")
    body: dict[str, Any] = json.loads(queue.client.fcall(name, 1, "control:gate", "", "0", "{}"))
    return body


def damaged(queue: ClockedQueue) -> set[str]:
    return set(seen(queue)["damaged"])


@pytest.mark.parametrize(("dispatch", "ages_ms"), [("fifo", [40, 100, 100]), ("edf", [40, 40, 40])])
def test_by_deadline_the_ages_are_those_of_the_shortest_class(
    open_clocked: OpenClockedFunction, dispatch: str, ages_ms: list[int]
) -> None:
    queue = open_clocked(dispatch=dispatch)
    queue.accepted("test-patch")
    queue.wait(60)
    queue.accepted("lint-fix")
    queue.wait(40)
    assert seen(queue)["ages_ms"] == ages_ms
    assert seen(queue)["oldest_at"] == queue.clock.now_ms - 100


def test_without_unknown_jobs_none_is_the_oldest(clocked: ClockedQueue) -> None:
    assert "oldest_unknown_at" not in seen(clocked)
    clocked.settle(clocked.started(), Outcome.UNKNOWN)
    at = clocked.clock.now_ms
    clocked.wait(5)
    assert seen(clocked)["oldest_unknown_at"] == at


def test_leases_that_have_ended_are_taken_off_their_own_class(clocked: ClockedQueue) -> None:
    clocked.started("lint-fix")
    clocked.wait(clocked.contract.lease_ms - 1)
    clocked.started("test-patch")
    classes = seen(clocked)["classes"]
    assert [classes[name]["inflight"] for name in ("lint-fix", "test-patch")] == [1, 1]
    clocked.wait(1)
    body = seen(clocked)
    assert [body["classes"][name]["inflight"] for name in ("lint-fix", "test-patch")] == [0, 1]
    assert (body["inflight"], body["leases"]) == (1, 2)


def test_what_is_no_hash_of_counts_has_none_and_says_so(clocked: ClockedQueue) -> None:
    clocked.accepted()
    assert damaged(clocked) == set()
    for key in ("counters", "counters:lint-fix"):
        clocked.client.rename(key, "aside")
        clocked.client.set(key, "x")
        assert damaged(clocked) == {"counters"}
        clocked.client.rename("aside", key)
    assert damaged(clocked) == set()


def test_each_container_that_lacks_what_its_neighbour_holds_is_named(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    queue.accepted()
    for container, part in {
        "queue:fifo:lint-fix:-": "deadlines", "queue:ready:lint-fix:-": "ready", "queue:delayed": "deadlines",
        "queue:delayed:lint-fix": "delayed", "queue:leases": "deadlines", "running:lint-fix": "running",
        "queue:unknown": "unknown", "queue:unknown:lint-fix": "unknown", "queue:blocked": "blocked",
        "queue:blocked:lint-fix": "blocked",
    }.items():  # fmt: skip
        queue.client.zadd(container, {"a stray": queue.clock.now_ms})
        assert damaged(queue) == {part}, container
        queue.client.zrem(container, "a stray")
    # A canary that runs is in no class's index.
    queue.client.zadd("queue:leases", {"canary": queue.clock.now_ms + 1000})
    queue.client.zadd("running:canary", {"canary": queue.clock.now_ms + 1000})
    assert damaged(queue) == set()


def test_an_instant_to_come_is_one_only_within_what_a_clock_is_set_back_by(clocked: ClockedQueue) -> None:
    for ahead_ms, shown in ((1000, True), (1001, False)):
        instant = clocked.clock.now_ms + ahead_ms
        clocked.client.set("control:snapshot", instant)
        clocked.client.set("control:seen", instant)
        body = seen(clocked)
        assert (body["snapshot_at"], body["gate"]["seen"]) == ((instant, instant) if shown else (0, 0))
    clocked.client.set("control:seen", clocked.clock.now_ms)
    clocked.client.delete("control:snapshot")
    assert seen(clocked)["snapshot_at"] == 0


def test_jobs_of_a_time_to_come_are_counted_past_the_same_bound(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    job = queue.accepted()
    for ahead_ms, many in ((1000, 0), (1001, 1)):
        queue.client.zadd("queue:fifo:lint-fix:-", {job: queue.clock.now_ms + ahead_ms})
        body = seen(queue)
        assert (body["ahead"], "clock" in body["damaged"]) == (many, bool(many))


def test_the_doomed_are_those_that_no_worker_may_start_and_those_that_run_too_long(clocked: ClockedQueue) -> None:
    margin_ms = round(clocked.contract.timings.margin_s * 1000)
    clocked.accepted(deadline_s=1)
    clocked.claimed()
    clocked.settle(clocked.started(deadline_s=1), Outcome.RETRY, delay_ms=1000 - margin_ms)
    clocked.accepted(deadline_s=1)
    clocked.wait(1000 - margin_ms)
    assert seen(clocked)["doomed"] == 0
    clocked.wait(1)
    assert seen(clocked)["doomed"] == 2
    clocked.wait(margin_ms - 1)
    assert seen(clocked)["doomed"] == 2
    clocked.wait(1)
    assert seen(clocked)["doomed"] == 3


def test_without_settings_there_is_only_the_gate(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    queue.client.delete("queue:settings")
    body = seen(queue)
    assert (body["digest"], "classes" in body, body["gate"]["admitted_percent"]) == ("", False, 0)
    assert (body["gate"]["stored"], body["gate"]["initialised"]) == ("unreadable", True)


def test_a_limited_backlog_shows_a_wait_a_class(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(backlog_limit=0.5)
    queue.accepted()
    classes = seen(queue)["classes"]
    assert classes["lint-fix"]["predicted_wait_ms"] > 0
    assert classes["test-patch"]["predicted_wait_ms"] == 0
    assert "predicted_wait_ms" not in classes["other"]
    assert ("deadline_ms" in classes["lint-fix"], "deadline_ms" in classes["other"]) == (True, False)


def test_a_run_s_damaged_numbers_are_0_and_a_decision_that_is_none_is_empty(clocked: ClockedQueue) -> None:
    gate = seen(clocked)["gate"]
    assert (gate["decision"], gate["decision_reason"], "run" in gate) == ("", "", False)
    clocked.store.open_run(
        {"runbook": "drain-and-recover", "trigger": "person", "run": "run1", "actor": "ada", "reason": "x"}
        | {"confirmed": True, "digest": "", "episode": ""}
    )
    run = seen(clocked)["gate"]["run"]
    assert (run["id"], run["verb"], run["step"], run["started_at"]) == ("run1", "", 0, clocked.clock.now_ms)
    clocked.client.hset("run:run1", mapping={"step": "x", "started_at": clocked.clock.now_ms + 1001})
    run = seen(clocked)["gate"]["run"]
    assert (run["step"], run["started_at"]) == (0, 0)
    clocked.store.order("abort", "ada", "x")


def calls(queue: ClockedQueue, command: str) -> int:
    """Give how often a reading calls a command."""
    queue.client.config_resetstat()
    seen(queue)
    counted: dict[str, dict[str, int]] = queue.client.info("commandstats")
    return counted.get(f"cmdstat_{command}", {"calls": 0})["calls"]


def test_of_a_healthy_queue_no_age_and_no_lease_is_counted_one_by_one(clocked: ClockedQueue) -> None:
    clocked.started()
    clocked.accepted()
    fresh, healthy = calls(clocked, "zcount"), calls(clocked, "zrangebyscore")
    clocked.wait(11_000)
    assert (fresh < calls(clocked, "zcount"), healthy, calls(clocked, "zrangebyscore")) == (True, 0, 1)
