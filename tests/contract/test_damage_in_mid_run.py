"""Does a key that somebody deleted or overwrote in mid-run stop nothing but what it held?

The gate still closes, a named person still opens, workers still pull, and what is dropped is in reconcile:log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sluicegate import keys
from sluicegate.errors import StoreError, StoreRejected
from sluicegate.job import CallKind, Outcome
from sluicegate.replies import GateAnswer
from tests.queues import OpenQueue, contract_of, wait_until
from tests.recovery import Recovery

ALERT: dict[str, Any] = {
    "fingerprint": "f1",
    "status": "firing",
    "starts_at": 1000,
    "ends_at": 0,
    "name": "QueueAgeHigh",
    "runbook": "drain-and-recover",
    "labels": "{}",
}
RUN_KEYS = ("run:run-1:journal", keys.RUNS_LIVE, keys.RUNS_RECENT, "approval:run-1")


@pytest.fixture
def queue(redis_url: str) -> Iterator[OpenQueue]:
    """Return an open queue whose invariants nobody checks afterwards: the tests break them."""
    opened = OpenQueue(redis_url, contract_of())
    yield opened
    opened.close()


def overwritten(queue: OpenQueue, key: str) -> None:
    queue.client.delete(key)
    queue.client.set(key, "a string")


def drained_by_controller(queue: OpenQueue) -> GateAnswer:
    _, fence = queue.store.lead("c1")
    queue.store.tick(fence)
    return queue.store.move_gate(action="drain", reason="x", exit_ok=False, epoch=0, fence=fence, figures="{}")


# --- the gate ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", RUN_KEYS)
def test_a_breach_in_the_ramp_closes_the_gate_whatever_was_overwritten(queue: OpenQueue, key: str) -> None:
    recovery = Recovery(queue)
    recovery.step("recover")
    recovery.green()
    assert recovery.step("reopen") == "moved"
    overwritten(queue, key)

    moved = drained_by_controller(queue)

    assert (moved.answer, moved.drain_state) == ("moved", "drain")
    assert queue.store.observe().gate.rollback_reason == "queue_age_not_recovering"


@pytest.mark.parametrize("key", [*RUN_KEYS, "queue:canary"])
@pytest.mark.parametrize("state", ["frozen", "rolling back"])
def test_a_named_person_ends_the_run_and_opens_whatever_was_overwritten(queue: OpenQueue, state: str, key: str) -> None:
    recovery = Recovery(queue)
    if state == "rolling back":
        recovery.step("rollback", reason="canary_failed", note="a test")
    overwritten(queue, key)

    assert queue.store.order("open_end_run", "ada", "looked").answer == "moved"

    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.run) == ("admit", None)
    assert queue.submit().accepted


# --- jobs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["gone", "no hash", "no state", "another state"])
def test_a_ready_job_whose_record_is_damaged_stops_no_worker(queue: OpenQueue, damage: str) -> None:
    lost, kept = queue.accepted(), queue.accepted()
    record = queue.store.keys.job(lost)
    if damage == "another state":
        queue.client.hset(record, "state", "unknown")
    else:
        queue.client.delete(record)
    if damage == "no hash":
        queue.client.set(record, "a string")
    if damage == "no state":
        queue.client.hset(record, "state", "asleep")

    claimed = queue.claim(slots=2)

    assert [job.job_id for job in claimed.jobs] == [kept]
    (dropped,) = queue.log("entry_dropped")
    assert dropped["job"] == lost
    assert queue.claim().jobs == ()
    telemetry = queue.store.observe()
    assert (telemetry.ready, telemetry.worker_inflight) == (0, 1)
    assert queue.client.lrange("queue:pending", 0, -1) == []


def test_an_id_that_somebody_pushed_by_hand_is_dropped(queue: OpenQueue) -> None:
    kept = queue.accepted()
    queue.client.zadd("queue:fifo:lint-fix:-", {"ghost": 1})
    queue.client.zadd("queue:ready:lint-fix:-", {"ghost": 1})
    queue.client.zadd("queue:leases", {"ghost": 1})
    queue.client.zadd("queue:delayed", {"ghost": 1})
    queue.client.zadd("queue:delayed:lint-fix", {"ghost": 1})

    queue.store.promote()
    assert queue.store.sweep().expired == ()
    assert [job.job_id for job in queue.claim(slots=5).jobs] == [kept]

    assert {entry["job"] for entry in queue.log("entry_dropped")} == {"ghost"}
    assert queue.store.observe().delayed == 0
    assert queue.store.sweep().lost == ()


@pytest.mark.parametrize("container", ["queue:ready:lint-fix:-", "queue:leases", "queue:delayed:lint-fix"])
def test_a_container_that_names_a_job_of_another_state_does_not_stop_the_sweep(
    queue: OpenQueue, container: str
) -> None:
    other = queue.accepted("test-patch")
    if container == "queue:ready:lint-fix:-":
        other = queue.claimed().job_id
        queue.client.sadd("queue:pairs", "lint-fix:-")
    if container == "queue:delayed:lint-fix":
        queue.client.sadd("queue:pairs", "lint-fix:-")
    queue.client.zadd(container, {other: 1})

    swept = queue.store.sweep()

    assert (swept.expired, swept.lost) == ((), ())
    assert queue.client.zscore(container, other) is None
    assert queue.log("entry_dropped")[0]["job"] == other


@pytest.mark.parametrize("damage", ["gone", "a string"])
def test_jobs_are_found_when_the_list_of_their_indexes_is_lost(queue: OpenQueue, damage: str) -> None:
    jobs = {queue.accepted(), queue.accepted("test-patch"), queue.accepted("browse")}
    running = queue.claimed()
    queue.client.delete("queue:pairs")
    if damage == "a string":
        queue.client.set("queue:pairs", "a string")

    telemetry = queue.store.observe()
    assert (telemetry.ready, telemetry.unfinished) == (2, 3)
    later = queue.accepted()

    claimed = {job.job_id for job in queue.claim(slots=9).jobs}

    assert claimed == (jobs | {later}) - {running.job_id}
    assert queue.client.smembers("queue:pairs") >= {"lint-fix:-", "test-patch:-", "browse:browser"}


@pytest.mark.parametrize("key", ["workers", "worker:w1", "done", "provider"])
def test_work_goes_on_without_the_records_beside_it(queue: OpenQueue, key: str) -> None:
    queue.settle(queue.started(), Outcome.SUCCEEDED, kind=CallKind.OK)
    for name in [key] if key.startswith("worker") else queue.client.keys(f"{key}:*"):
        overwritten(queue, name)

    assert queue.store.workers() is not None
    queue.store.hello("w1", "1")
    queue.settle(queue.started(), Outcome.SUCCEEDED, kind=CallKind.OK)

    assert queue.counters()["met"] == 2
    assert "w1" in [worker.worker_id for worker in queue.store.workers()]
    assert drained_by_controller(queue).answer == "moved"


def test_jobs_are_settled_and_judged_without_the_log_of_it(queue: OpenQueue) -> None:
    late, judged = queue.started("send-mail"), queue.started("send-mail")
    for job in (late, judged):
        queue.settle(job, Outcome.UNKNOWN, kind=CallKind.DROPPED)

    overwritten(queue, keys.RECONCILE_LOG)
    assert queue.settle(late, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
    overwritten(queue, keys.RECONCILE_LOG)
    assert queue.settle(late, Outcome.SUCCEEDED, kind=CallKind.OK, request="another").answer == "stale"
    overwritten(queue, keys.RECONCILE_LOG)
    answer = queue.store.reconcile(judged.job_id, "succeeded", actor="ada", reason="looked", source="person")
    assert answer == ("moved", "succeeded")
    overwritten(queue, keys.RECONCILE_LOG)
    queue.store.confirm_duplicate(judged.job_id, actor="ada", note="twice in the provider's log")
    assert queue.store.observe().gate.duplicates_unacknowledged == 1
    assert [entry["kind"] for entry in queue.store.reconcile_log()] == ["duplicate"]


def test_a_worker_with_a_damaged_record_confirms_anew(queue: OpenQueue) -> None:
    queue.claim()
    queue.client.hset("worker:w1", mapping={"epoch": "soon", "seen": "x"})
    assert [worker.epoch for worker in queue.store.workers()] == [0]
    queue.claim()
    assert [worker.epoch for worker in queue.store.workers()] == [queue.store.observe().gate.epoch]


def test_a_start_whose_record_is_damaged_keeps_no_other_from_starting(queue: OpenQueue) -> None:
    queue.accepted()
    queue.accepted()
    first, second = queue.claim(slots=2).jobs
    overwritten(queue, queue.store.keys.job(first.job_id))

    starts = [(job.job_id, job.fence) for job in (first, second)]

    assert queue.store.intents("w1", starts) == ("stale", "go")
    assert queue.store.workers()[0].inflight == 1


# --- what people read ----------------------------------------------------------------------------------------------


def test_a_foreign_entry_in_a_log_is_not_shown_and_hides_no_other(queue: OpenQueue) -> None:
    Recovery(queue).step("journal")
    for name in ("run:run-1:journal", keys.GATE_LOG, keys.RECONCILE_LOG):
        queue.client.xadd(name, {"note": "by hand"})
    queue.client.hset("run:run-1", mapping={"step": "soon", "started_at": "x", "ended_at": "y"})

    history = queue.store.run("run-1")

    assert history is not None
    assert [entry.phase for entry in history.journal] == ["opened", "claimed", "done"]
    assert (history.run.step, history.run.started_at_ms) == (0, 0)
    assert [run.run_id for run in queue.store.runs()] == ["run-1"]
    assert [entry.reason for entry in queue.store.gate_log(10)] == ["run_opened", "init"]
    assert queue.store.reconcile_log() == ()


@pytest.mark.parametrize("name", ["run:run-1:journal", keys.GATE_LOG, keys.RECONCILE_LOG, keys.RUNS_RECENT])
def test_a_log_that_is_none_reads_as_empty(queue: OpenQueue, name: str) -> None:
    Recovery(queue)
    overwritten(queue, name)
    assert queue.store.run("run-1") is not None
    assert len(queue.store.runs()) == (0 if name == keys.RUNS_RECENT else 1)
    assert len(queue.store.gate_log(10)) == (0 if name == keys.GATE_LOG else 2)
    assert queue.store.reconcile_log() == ()


# --- alerts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["inbox", "episodes:open", "episode:alertmanager:f1"])
def test_an_alert_is_kept_whatever_was_overwritten(queue: OpenQueue, key: str) -> None:
    queue.store.notify("alertmanager", "g", [ALERT])
    overwritten(queue, key)
    assert queue.store.episodes() is not None

    assert queue.store.notify("alertmanager", "g", [ALERT]).event

    assert [episode.episode_id for episode in queue.store.episodes()] == ["alertmanager:f1"]


def test_an_end_that_lies_in_the_future_silences_no_later_alert(queue: OpenQueue) -> None:
    far_ms = 253_402_300_799_000
    queue.store.notify("alertmanager", "g", [{**ALERT, "status": "resolved", "ends_at": far_ms}])
    assert queue.store.episodes() == ()
    ended_ms = queue.store.observe().at_ms
    wait_until(lambda: queue.store.observe().at_ms > ended_ms, "the next ms")

    fired = queue.store.notify("alertmanager", "g", [{**ALERT, "starts_at": ended_ms + 60_000}])

    assert fired.episodes != ()
    assert len(queue.store.episodes()) == 1


def test_an_alert_from_the_future_is_ended_by_its_end(queue: OpenQueue) -> None:
    far_ms = 253_402_300_799_000
    queue.store.notify("alertmanager", "g", [{**ALERT, "starts_at": far_ms}])
    assert len(queue.store.episodes()) == 1
    ended_ms = queue.store.observe().at_ms + 60_000

    queue.store.notify("alertmanager", "g", [{**ALERT, "status": "resolved", "ends_at": ended_ms}])

    assert queue.store.episodes() == ()


def test_a_notification_that_cannot_be_kept_takes_no_other_of_its_round_along(queue: OpenQueue) -> None:
    spoiled = {**ALERT, "fingerprint": "f2", "starts_at": None}
    batches = ([[ALERT]], [[ALERT], [spoiled]], [[{**ALERT, "fingerprint": "f3"}]])

    first, second, third = queue.store.notify_many([("alertmanager", "g", parts) for parts in batches])

    assert isinstance(second, StoreRejected)
    assert not isinstance(first, StoreError)
    assert not isinstance(third, StoreError)
    kept = {episode.episode_id for episode in queue.store.episodes()}
    assert kept == {"alertmanager:f1", "alertmanager:f3"}
    with pytest.raises(StoreRejected):
        queue.store.notify("alertmanager", "g", [spoiled])
