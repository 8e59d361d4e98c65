"""Earliest deadline first, and the backlog limit by class, on real servers (contract §5)."""

from __future__ import annotations

import time

import pytest

from sluicegate.contract import Dispatch
from sluicegate.job import CallKind, Outcome
from tests.queues import OpenQueue, OpenQueueFunction, contract_of


@pytest.fixture
def edf(open_queue: OpenQueueFunction) -> OpenQueue:
    """Return a queue that gives the job with the earliest deadline first."""
    return open_queue(dispatch="edf")


def test_the_earliest_deadline_comes_first_whatever_its_class(edf: OpenQueue) -> None:
    slow = edf.accepted("refactor-plan")
    soon = edf.accepted("test-patch", deadline_s=5)
    middle = edf.accepted("lint-fix")
    assert [job.job_id for job in edf.claim(slots=2).jobs] == [soon, middle]
    assert [job.job_id for job in edf.claim(slots=2).jobs] == [slow]


def test_within_a_class_the_deadline_decides_and_not_the_age(edf: OpenQueue) -> None:
    late = edf.accepted("lint-fix", deadline_s=11)
    time.sleep(0.002)
    early = edf.accepted("lint-fix", deadline_s=6)
    assert [job.job_id for job in edf.claim(slots=2).jobs] == [early, late]


def test_a_long_backlog_is_given_in_the_order_of_its_deadlines(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(dispatch="edf", max_pending=500, max_running=500)
    submissions = [
        queue.producer.prepare("test-patch", "{}", job_id=f"j{n}", deadline_s=10 + (n * 37 % 100) / 10)
        for n in range(90)
    ]
    queue.producer.submit_many(submissions)
    wanted = sorted(range(90), key=lambda n: n * 37 % 100)
    assert [job.job_id for job in queue.claim(slots=60).jobs] == [f"j{n}" for n in wanted[:60]]
    assert [job.job_id for job in queue.claim(slots=60).jobs] == [f"j{n}" for n in wanted[60:]]


def test_a_full_cost_class_is_passed_over_by_deadline_as_well(edf: OpenQueue) -> None:
    first = edf.accepted("browse", deadline_s=4)
    edf.accepted("browse", deadline_s=5)
    other = edf.accepted("lint-fix", deadline_s=11)
    assert [job.job_id for job in edf.claim(slots=3).jobs] == [first, other]


def test_nothing_starts_under_the_margin(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(dispatch="edf", timings={"margin_s": 0.5})
    late = queue.accepted(deadline_s=0.6)
    good = queue.accepted(deadline_s=9)
    time.sleep(0.12)
    claimed = queue.claim(slots=2)
    assert [job.job_id for job in claimed.jobs] == [good]
    assert [event.job_id for event in claimed.expired] == [late]


def test_the_age_rules_go_by_the_class_with_the_shortest_deadline(edf: OpenQueue) -> None:
    edf.accepted("refactor-plan")
    time.sleep(0.1)
    telemetry = edf.store.observe()
    assert telemetry.queue_age_p95_seconds == 0, "the long class waits by design"
    assert telemetry.oldest_job_age_seconds >= 0.1
    assert telemetry.classes["refactor-plan"].queue_age_p95_seconds >= 0.1
    edf.accepted("lint-fix")
    time.sleep(0.05)
    assert edf.store.observe().queue_age_p95_seconds >= 0.05


def test_another_dispatch_takes_effect_on_the_jobs_that_wait(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=3000)
    first = queue.accepted("lint-fix", deadline_s=11)
    time.sleep(0.002)
    second = queue.accepted("lint-fix", deadline_s=6)
    changed = contract_of(dispatch=Dispatch.EDF, max_pending=3000)
    assert queue.store.apply_settings(changed.for_redis(), changed.digest(), "ada", "a test") == "moved"
    assert not queue.client.exists("queue:pending"), "a list of 3,000 is not kept by deadline"
    assert [job.job_id for job in queue.claim().jobs] == [second]
    back = contract_of(max_pending=3000)
    queue.store.apply_settings(back.for_redis(), back.digest(), "ada", "a test")
    assert queue.client.lrange("queue:pending", 0, -1) == [first]


def limited(open_queue: OpenQueueFunction, **changes: object) -> OpenQueue:
    """Open a queue of 2 slots whose jobs are expected to take 1 s: 12 s of time leave lint-fix 5.8 s of work a slot."""
    wanted = {"dispatch": "edf", "backlog_limit": 0.5, "max_running": 2, "max_pending": 200, "expected_service_s": 1.0}
    return open_queue(**(wanted | changes))


def test_a_class_takes_no_more_than_its_share_can_do_in_its_time(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue, dispatch="fifo")  # five classes share two slots: 2.5 s a job
    decisions = [queue.submit("lint-fix", deadline_s=12) for _ in range(5)]
    assert [decision.accepted for decision in decisions] == [True, True, True, False, False]
    assert {decision.reason for decision in decisions if not decision.accepted} == {"deadline_unreachable"}
    assert queue.submit("test-patch").accepted, "another class has its own share"


def test_by_deadline_the_shortest_class_takes_what_all_slots_can_do_in_its_time(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)  # two slots do 11.6 s of work in the 5.8 s that it may wait
    decisions = [queue.submit("lint-fix", deadline_s=12) for _ in range(14)]
    assert [decision.accepted for decision in decisions] == [True] * 12 + [False] * 2
    assert decisions[-1].reason == "deadline_unreachable"
    # The others still have their shares, in their longer times.
    assert all(queue.submit("test-patch", deadline_s=36).accepted for _ in range(12))


def test_by_deadline_a_job_of_the_shortest_class_with_a_longer_time_has_its_share_only(
    open_queue: OpenQueueFunction,
) -> None:
    queue = limited(open_queue)  # 29.8 s at 2.5 s a job
    decisions = [queue.submit("lint-fix", deadline_s=36).accepted for _ in range(14)]
    assert decisions == [True] * 12 + [False] * 2


def test_a_share_is_weighed_against_the_others(open_queue: OpenQueueFunction) -> None:
    queue = limited(
        open_queue, dispatch="fifo", classes={"lint-fix": {"deadline_s": 12, "share": 16}}
    )  # 16 of 20: 0.625 s a job
    decisions = [queue.submit("lint-fix", deadline_s=12).accepted for _ in range(12)]
    assert decisions == [True] * 10 + [False] * 2


def test_the_service_time_that_was_seen_counts_once_there_is_enough_of_it(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue, dispatch="fifo", prediction_min_completions=2)
    for _ in range(2):
        job = queue.started("lint-fix")
        queue.settle(job, Outcome.SUCCEEDED, call={"kind": CallKind.OK.value, "latency_ms": 100})
    decisions = [queue.submit("lint-fix", deadline_s=12).accepted for _ in range(30)]
    assert decisions.index(False) == 24, "a tenth of the expected time: 0.25 s a job"


def test_every_class_keeps_the_same_reserve_and_not_the_same_part_of_its_time(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)  # 35.6 s of time less the 5.8 s that lint-fix keeps, at 2.5 s a job
    decisions = [queue.submit("test-patch", deadline_s=36).accepted for _ in range(14)]
    assert decisions == [True] * 12 + [False] * 2


def test_a_job_whose_caller_asks_late_keeps_the_reserve_as_well(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)
    queue.accepted("test-patch", deadline_s=36)
    assert queue.submit("test-patch", deadline_s=8).reason == "deadline_unreachable", "1.8 s of wait, 2.5 s of work"
    queue.accepted("test-patch", deadline_s=9)


def test_what_is_due_before_a_job_must_fit_into_all_slots_whatever_its_class(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)  # two slots do 11.6 s of work in the 5.8 s that a job of 12 s may wait
    for job_class in ("test-patch", "refactor-plan", "send-mail", "browse"):
        decisions = [queue.submit(job_class, deadline_s=12).accepted for _ in range(4)]
        assert decisions == [True] * 3 + [False], f"the share of {job_class}"
    assert queue.submit("lint-fix", deadline_s=12).reason == "deadline_unreachable", "nothing of its class waits"
    queue.accepted("lint-fix", deadline_s=13)


def test_in_one_call_it_is_the_same_as_one_by_one(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)
    classes = [name for name in ("test-patch", "refactor-plan", "send-mail", "browse") for _ in range(4)]
    asked = [queue.producer.prepare(name, "{}", deadline_s=12) for name in [*classes, "lint-fix"]]
    decisions = queue.producer.submit_many(asked)
    assert [decision.accepted for decision in decisions] == ([True] * 3 + [False]) * 4 + [False]


def test_a_job_that_would_go_before_those_that_fill_a_longer_time_is_refused(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue, classes={"lint-fix": {"deadline_s": 12, "share": 0.01}})
    longer = ["test-patch", "refactor-plan", "send-mail", "browse"]
    for job_class in longer:  # their shares are 15 jobs each: 30 s of the 29.8 s until the end of test-patch
        for _ in range(14):
            queue.accepted(job_class, deadline_s=35.9)
    early = queue.accepted("lint-fix", deadline_s=12)
    assert queue.claimed().job_id == early, "so none of its class waits any more"
    for job_class in longer:
        queue.accepted(job_class, deadline_s=35.9)
    assert queue.submit("lint-fix", deadline_s=12).reason == "deadline_unreachable"


def test_with_nothing_waiting_no_wait_is_too_long(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)
    queue.accepted("lint-fix", deadline_s=2)  # less than the reserve, and nobody is before it


def test_by_age_no_class_may_count_on_more_time_than_the_shortest_has(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue, dispatch="fifo")
    decisions = [queue.submit("test-patch", deadline_s=36).accepted for _ in range(5)]
    assert decisions == [True] * 3 + [False] * 2


def test_a_class_may_expect_a_service_time_of_its_own(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue, dispatch="fifo", classes={"lint-fix": {"deadline_s": 12, "expected_service_s": 0.5}})
    decisions = [queue.submit("lint-fix", deadline_s=12).accepted for _ in range(8)]
    assert decisions == [True] * 5 + [False] * 3


def test_the_service_time_of_a_rare_class_is_remembered_beyond_the_window(open_queue: OpenQueueFunction) -> None:
    timings = {"provider_window_s": 0.3}
    queue = limited(open_queue, dispatch="fifo", prediction_min_completions=2, timings=timings)
    for _ in range(2):
        job = queue.started("lint-fix")
        queue.settle(job, Outcome.SUCCEEDED, call={"kind": CallKind.OK.value, "latency_ms": 100})
    queue.sweep_until(lambda: not queue.client.keys("done:*"), "the window's counts to be gone")
    decisions = [queue.submit("lint-fix", deadline_s=12).accepted for _ in range(30)]
    assert decisions.index(False) == 24


def test_a_service_time_that_changes_is_followed_within_a_few_predictions_worth(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue, dispatch="fifo", prediction_min_completions=2)
    for latency_ms in [1000] * 20 + [100] * 32:
        job = queue.started("lint-fix")
        queue.settle(job, Outcome.SUCCEEDED, call={"kind": CallKind.OK.value, "latency_ms": latency_ms})
    decisions = [queue.submit("lint-fix", deadline_s=12).accepted for _ in range(30)]
    assert decisions.index(False) >= 20, "what was seen first has faded"


def test_the_time_of_handing_a_job_over_counts_as_well_as_that_of_its_call(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)
    job = queue.started("lint-fix")
    time.sleep(0.15)
    queue.settle(job, Outcome.SUCCEEDED, call={"kind": CallKind.OK.value, "latency_ms": 10})
    assert int(queue.client.hget("service", "ms:lint-fix")) >= 150


def test_damage_to_the_remembered_service_times_stops_nothing(open_queue: OpenQueueFunction) -> None:
    queue = limited(open_queue)
    queue.client.set("service", "garbage")
    job = queue.started("lint-fix")
    settled = queue.settle(job, Outcome.SUCCEEDED, call={"kind": CallKind.OK.value, "latency_ms": 100})
    assert settled.state == "succeeded"
    assert queue.client.hgetall("service") == {"jobs:lint-fix": "1", "ms:lint-fix": "100"}


def test_without_the_limit_a_class_may_fill_the_queue(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(dispatch="edf", max_running=2, max_pending=20)
    assert all(queue.submit("lint-fix").accepted for _ in range(20))
    assert queue.submit("lint-fix").reason == "overloaded"
