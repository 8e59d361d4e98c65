"""The parts of a reading that the exporter shows, at their bounds: what it counts, ages and finds damaged."""

from __future__ import annotations

import pytest

from sluicegate.contract import Contract
from sluicegate.job import Outcome
from sluicegate.telemetry import Telemetry
from tests.queues import ClockedQueue, OpenClockedFunction
from tests.recovery import Recovery


def seen(queue: ClockedQueue) -> Telemetry:
    return queue.store.observe()


def damaged(queue: ClockedQueue) -> set[str]:
    return set(seen(queue).damaged)


@pytest.mark.parametrize(("dispatch", "ages_s"), [("fifo", [0.04, 0.1, 0.1]), ("edf", [0.04, 0.04, 0.04])])
def test_by_deadline_the_ages_are_those_of_the_shortest_class(
    open_clocked: OpenClockedFunction, dispatch: str, ages_s: list[float]
) -> None:
    queue = open_clocked(dispatch=dispatch)
    queue.accepted("test-patch")
    queue.wait(60)
    queue.accepted("lint-fix")
    queue.wait(40)
    now = seen(queue)
    assert [now.queue_age_p50_seconds, now.queue_age_p95_seconds, now.queue_age_p99_seconds] == ages_s
    assert (now.oldest_ready_at_ms, now.oldest_job_age_seconds) == (queue.clock.now_ms - 100, 0.1)


def test_without_unknown_jobs_none_is_the_oldest(clocked: ClockedQueue) -> None:
    assert seen(clocked).oldest_unknown_at_ms is None
    clocked.settle(clocked.started(), Outcome.UNKNOWN)
    at = clocked.clock.now_ms
    clocked.wait(5)
    assert seen(clocked).oldest_unknown_at_ms == at


def test_leases_that_have_ended_are_taken_off_their_own_class(clocked: ClockedQueue) -> None:
    clocked.started("lint-fix")
    clocked.wait(clocked.contract.lease_ms - 1)
    clocked.started("test-patch")
    classes = seen(clocked).classes
    assert [classes[name].inflight for name in ("lint-fix", "test-patch")] == [1, 1]
    clocked.wait(1)
    now = seen(clocked)
    assert [now.classes[name].inflight for name in ("lint-fix", "test-patch")] == [0, 1]
    assert (now.worker_inflight, now.running) == (1, 2)


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
        now = seen(clocked)
        assert (now.snapshot_at_ms, now.gate.controller_seen_ms) == ((instant, instant) if shown else (0, 0))
    clocked.client.set("control:seen", clocked.clock.now_ms)
    clocked.client.delete("control:snapshot")
    assert seen(clocked).snapshot_at_ms == 0


def test_jobs_of_a_time_to_come_are_counted_past_the_same_bound(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    job = queue.accepted()
    for ahead_ms, many in ((1000, 0), (1001, 1)):
        queue.client.zadd("queue:fifo:lint-fix:-", {job: queue.clock.now_ms + ahead_ms})
        now = seen(queue)
        assert (now.ahead, "clock" in now.damaged) == (many, bool(many))


def test_the_doomed_are_those_that_no_worker_may_start_and_those_that_run_too_long(clocked: ClockedQueue) -> None:
    margin_ms = round(clocked.contract.timings.margin_s * 1000)
    clocked.accepted(deadline_s=1)
    clocked.claimed()
    clocked.settle(clocked.started(deadline_s=1), Outcome.RETRY, delay_ms=1000 - margin_ms)
    clocked.accepted(deadline_s=1)
    clocked.wait(1000 - margin_ms)
    assert seen(clocked).doomed == 0
    clocked.wait(1)
    assert seen(clocked).doomed == 2
    clocked.wait(margin_ms - 1)
    assert seen(clocked).doomed == 2
    clocked.wait(1)
    assert seen(clocked).doomed == 3


def test_without_settings_there_is_only_the_gate(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    queue.client.delete("queue:settings")
    now = seen(queue)
    assert (now.settings_digest, now.classes, now.gate.admission_ratio) == ("", {}, 0)
    assert (now.gate.readable, now.gate.initialised) == (False, True)


def test_a_limited_backlog_shows_a_wait_a_class(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(backlog_limit=0.5)
    queue.accepted()
    classes = seen(queue).classes
    assert (classes["lint-fix"].predicted_wait_seconds or 0) > 0
    assert (classes["test-patch"].predicted_wait_seconds, classes["other"].predicted_wait_seconds) == (0, None)
    assert (classes["lint-fix"].deadline_seconds is None, classes["other"].deadline_seconds) == (False, None)


def test_a_run_s_damaged_instant_is_0_and_a_decision_that_is_none_is_empty(clocked: ClockedQueue) -> None:
    gate = seen(clocked).gate
    assert (gate.decision, gate.decision_reason, gate.run) == ("", "", None)
    clocked.store.open_run(
        {"runbook": "drain-and-recover", "trigger": "person", "run": "run1", "actor": "ada", "reason": "x"}
        | {"confirmed": True, "digest": "", "episode": ""}
    )
    run = seen(clocked).gate.run
    assert run is not None
    assert (run.run_id, run.runbook, run.step, run.started_at_ms) == (
        "run1",
        "drain-and-recover",
        "",
        clocked.clock.now_ms,
    )
    for text in ("x", str(clocked.clock.now_ms + 1001)):
        clocked.client.hset("run:run1", "started_at", text)
        run = seen(clocked).gate.run
        assert run is not None
        assert run.started_at_ms == 0
    clocked.store.order("abort", "ada", "x")


def test_a_run_says_which_step_it_is_at(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    Recovery(queue).step("recover")
    run = seen(queue).gate.run
    assert run is not None
    assert run.step == "recover"


def test_the_kill_switch_is_shown_with_its_reason(clocked: ClockedQueue) -> None:
    assert seen(clocked).kill_switch == ""
    clocked.store.kill_switch(on=True, actor="ada", reason="a test")
    assert "a test" in seen(clocked).kill_switch


@pytest.mark.parametrize("costs", [("", "browser"), ("browser", "")])
def test_the_jobs_of_a_class_are_counted_by_age_whatever_they_cost(
    open_clocked: OpenClockedFunction, costs: tuple[str, str]
) -> None:
    queue = open_clocked(checked=False)
    for number, (cost, age_ms) in enumerate(zip(costs, (1_500, 30_000), strict=True)):
        assert seen(queue).classes["lint-fix"].ready == number, "a pair that is new is seen at once"
        job_id = queue.accepted("lint-fix", cost_class=cost or None)
        queue.client.zadd(f"queue:fifo:lint-fix:{cost or '-'}", {job_id: queue.clock.now_ms - age_ms})
    now = seen(queue)
    assert now.classes["lint-fix"].younger == tuple(
        sum(age_s < bound for age_s in (1.5, 30.0)) for bound in now.age_bounds_seconds
    )
    assert {0, 1, 2} >= set(now.classes["lint-fix"].younger) > {1}
    assert now.classes["lint-fix"].oldest_job_age_seconds == 30.0


def test_what_waits_of_a_class_that_is_declared_no_more_counts_as_other(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    queue.settle(queue.started("send-mail"), Outcome.RETRY, delay_ms=1000)
    assert seen(queue).classes["send-mail"].delayed == 1
    body = queue.contract.model_dump(mode="json")
    del body["classes"]["send-mail"]
    fewer = Contract.model_validate(body)
    assert queue.store.apply_settings(fewer.for_redis(), fewer.digest(), "ada", "a test") == "moved"
    for _ in range(2):
        classes = seen(queue).classes
        assert "send-mail" not in classes
        assert classes["other"].delayed == 1


def test_pairs_that_are_found_while_their_list_is_lost_are_looked_for_each_time(
    open_clocked: OpenClockedFunction,
) -> None:
    queue = open_clocked(checked=False)
    queue.accepted("lint-fix")
    queue.client.delete("queue:pairs")
    assert seen(queue).classes["test-patch"].ready == 0
    for family in ("fifo", "ready"):
        queue.client.zadd(f"queue:{family}:test-patch:-", {"x": queue.clock.now_ms})
    assert seen(queue).classes["test-patch"].ready == 1


def calls(queue: ClockedQueue, command: str) -> int:
    """Give how often a reading calls a command."""
    queue.client.config_resetstat()
    seen(queue)
    counted: dict[str, dict[str, int]] = queue.client.info("commandstats")
    return counted.get(f"cmdstat_{command}", {"calls": 0})["calls"]


def test_of_a_healthy_queue_no_age_and_no_lease_is_counted_one_by_one(clocked: ClockedQueue) -> None:
    for _ in range(20):
        clocked.accepted()
    clocked.wait(6_000)
    assert calls(clocked, "zcount") == 0, "all are of one age, on one side of every bound"
    clocked.accepted()
    assert calls(clocked, "zcount") > 0
    clocked.claimed()
    healthy = calls(clocked, "zrangebyscore")
    clocked.wait(clocked.contract.lease_ms)
    assert (healthy, calls(clocked, "zrangebyscore")) == (0, 1)
