"""What users of other queues reported, played here: what a pause leaks, what a sweep takes, orphans, hangs, poison."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sluicegate.job import Call, CallKind, Job, Outcome
from sluicegate.policy import Figures, Thresholds, decide
from sluicegate.reconcile import Verdict, by_ledger, by_person
from sluicegate.store import Store
from tests.other_programs import FRAGILE, POISON, SUPERVISOR, command
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.scripted_provider import Reply, ScriptedProvider
from tests.working import RunningWorker


class Counting:
    """Be a handler that takes a moment, and count how often each job was called and how many at once."""

    def __init__(self, takes_s: float = 0.02) -> None:
        self.calls: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.began: dict[str, float] = {}
        self._takes_s = takes_s

    async def __call__(self, job: Job, timeout_s: float) -> Call:
        self.calls[job.job_id] += 1
        self.began[job.job_id] = time.monotonic()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self._takes_s)
        finally:
            self.at_once -= 1
        return Call(CallKind.OK, self._takes_s, 200)


def looks(queue: OpenQueue, worker: str) -> int:
    """Give how often a worker's process has claimed by now."""
    return int(str(queue.client.hget(f"worker:{worker}", "request") or "-0").rpartition("-")[2])


def each_looks_again(queue: OpenQueue, workers: tuple[str, ...], times: int = 3) -> None:
    """Wait until every worker has claimed several times more: what it would have taken it has."""
    before = {worker: looks(queue, worker) for worker in workers}
    wait_until(lambda: all(looks(queue, worker) >= before[worker] + times for worker in workers), "further claims")


# 1. rq/rq#526: each idle worker takes one more job after the pause.


def test_a_freeze_leaks_no_job_to_a_worker_that_waits_for_one(queue: OpenQueue) -> None:
    # Given three workers that wait for work, and six jobs whose end nobody saw.
    workers = ("idle-1", "idle-2", "idle-3")
    jobs = []
    for _ in range(6):
        job = queue.started()
        queue.settle(job, Outcome.UNKNOWN)
        jobs.append(job.job_id)
    handler = Counting()
    with ExitStack() as stack:
        for name in workers:
            stack.enter_context(RunningWorker(queue.url, handler, worker_id=name))
        each_looks_again(queue, workers)
        # When the gate is drained, and each of them has confirmed it,
        drained = queue.store.order("drain", "ada", "a freeze")
        wait_until(
            lambda: {view.epoch for view in queue.store.workers() if view.worker_id in workers} == {drained.epoch},
            "the confirmation of every worker",
        )
        # and the jobs become ready, which wakes whoever waits,
        for job_id in jobs:
            assert by_person(queue.store, job_id, Verdict.RETRY, actor="ada", reason="not done").state == "ready"
        # then none starts, however often they look,
        each_looks_again(queue, workers)
        assert handler.calls == Counter()
        assert queue.store.observe().ready == 6
        # and after the thaw each runs once.
        queue.store.order("open", "ada", "thawed")
        wait_until(lambda: all(queue.state(job_id) == "succeeded" for job_id in jobs), "the end of all jobs")
    assert handler.calls == Counter(jobs)


# 4. saq#124, #277: a job that was popped and not yet recorded was swept.


def test_a_sweep_at_any_step_of_a_claim_takes_no_live_job(queue: OpenQueue) -> None:
    other = Store.connect(queue.url)
    swept = []

    def sweep() -> None:
        result = other.sweep()
        swept.extend([*result.expired, *result.lost])
        other.promote()

    sweep()
    job_id = queue.accepted()
    sweep()
    # The claim's answer is lost: the job is running, and its worker does not know it.
    queue.store.claim("w1", "r1", 1)
    sweep()
    (job,) = queue.store.claim("w1", "r1", 1).jobs
    sweep()
    assert queue.store.intent("w1", job.job_id, job.fence) == "go"
    sweep()
    assert queue.store.renew("w1", {job.job_id: job.fence}).lost == ()
    sweep()
    assert queue.settle(job, Outcome.REQUEUED).state == "ready"
    sweep()
    again = queue.claimed()
    sweep()
    assert queue.settle(again, Outcome.NOT_EXECUTED, delay_ms=50).state == "delayed"
    queue.sweep_until(lambda: queue.state(job_id) == "ready", "the delay")
    last = queue.claimed()
    sweep()
    assert queue.settle(last, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
    sweep()
    other.close()
    assert swept == []
    assert queue.log("entry_dropped") == []


def test_sweepers_that_never_pause_take_nothing_from_workers_that_never_pause(queue: OpenQueue) -> None:
    stop = threading.Event()
    swept: list[object] = []

    def sweep() -> None:
        store = Store.connect(queue.url)
        while not stop.is_set():
            result = store.sweep()
            swept.extend([*result.expired, *result.lost])
        store.close()

    sweepers = [threading.Thread(target=sweep) for _ in range(2)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for _ in range(60):
            job_id = queue.accepted()
            job = queue.claimed()
            assert queue.store.intent("w1", job.job_id, job.fence) == "go"
            assert queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
            assert queue.record(job_id)["attempt"] == "1"
    finally:
        stop.set()
        for sweeper in sweepers:
            sweeper.join()
    assert swept == []


# 6. oban#1141, faktory_worker_node#163: the supervisor is killed, its child works on.


class Orphaned:
    """Start a supervisor, kill it alone, and let its child finish when told."""

    def __init__(self, url: str, folder: Path) -> None:
        self._folder = folder
        self._supervisor = subprocess.Popen(command(SUPERVISOR, url, str(folder)), start_new_session=True)
        wait_until((folder / "child.pid").exists, "the child", 20)
        self._child = int((folder / "child.pid").read_text())

    def kill_supervisor(self) -> None:
        self._supervisor.send_signal(signal.SIGKILL)
        self._supervisor.wait()
        os.kill(self._child, 0)  # the child lives

    def child_says(self) -> str:
        """Let the child finish; give what its settlement was answered."""
        (self._folder / "done").touch()
        wait_until((self._folder / "answer").exists, "the child's settlement", 20)
        return (self._folder / "answer").read_text()

    def end(self) -> None:
        for pid in (self._supervisor.pid, self._child):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._supervisor.wait()


@pytest.fixture
def orphaned(tmp_path: Path) -> Iterator[Callable[[str], Orphaned]]:
    """Return a function that starts a supervisor with its child; both are gone after the test."""
    with ExitStack() as stack:

        def start(url: str) -> Orphaned:
            made = Orphaned(url, tmp_path)
            stack.callback(made.end)
            return made

        yield start


@pytest.mark.parametrize("job_class", ["lint-fix", "send-mail"])
def test_an_orphan_that_finishes_after_its_lease_settles_its_unknown_job_by_its_fence(
    open_queue: OpenQueueFunction, orphaned: Callable[[str], Orphaned], job_class: str
) -> None:
    queue = open_queue(lease_ms=600)
    job_id = queue.accepted(job_class)
    orphan = orphaned(queue.url)
    orphan.kill_supervisor()
    queue.sweep_until(lambda: queue.state(job_id) == "unknown", "the end of the lease")
    assert queue.claim().jobs == (), "an unknown job is nobody's to start"
    assert orphan.child_says() == "ok succeeded"
    (entry,) = queue.log("late_worker")
    assert (entry["job"], entry["outcome"]) == (job_id, "succeeded")
    assert queue.record(job_id)["attempt"] == "1"


@pytest.mark.parametrize(("job_class", "duplicates"), [("send-mail", 1), ("lint-fix", 0)])
def test_an_orphan_whose_job_was_run_again_is_stale_and_an_unsafe_one_raises_a_duplicate(
    open_queue: OpenQueueFunction, orphaned: Callable[[str], Orphaned], job_class: str, duplicates: int
) -> None:
    queue = open_queue(lease_ms=600)
    job_id = queue.accepted(job_class)
    orphan = orphaned(queue.url)
    orphan.kill_supervisor()
    queue.sweep_until(lambda: queue.state(job_id) == "unknown", "the end of the lease")
    assert by_person(queue.store, job_id, Verdict.RETRY, actor="ada", reason="I believe it was lost").state == "ready"
    again = queue.claimed(worker="w2")
    assert queue.store.intent("w2", job_id, again.fence) == "go"
    assert queue.settle(again, Outcome.SUCCEEDED, kind=CallKind.OK, worker="w2").state == "succeeded"

    assert orphan.child_says() == "stale succeeded"

    gate = queue.store.observe().gate
    assert gate.duplicates_unacknowledged == duplicates
    assert len(queue.log("stale_write")) == 1
    if duplicates:
        thresholds = Thresholds()
        assert decide(Figures.of(queue.store.observe()), thresholds).reason == "duplicate_side_effect"


# 7. langfuse#13037, superlog#218: a provider that never answers holds every slot.


def test_a_provider_that_never_answers_holds_no_slot_longer_than_a_timeout(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"call_timeout_max_s": 0.6})
    jobs = [queue.accepted("test-patch") for _ in range(8)]
    with (
        ScriptedProvider(lambda seen: Reply(after_s=60)) as provider,
        RunningWorker(queue.url, provider.url, max_inflight=4) as worker,
    ):
        # Every slot is taken by a call that would last a minute, and is free again after its timeout.
        wait_until(lambda: {seen.key for seen in provider.calls} == set(jobs), "a call for every job")
        wait_until(lambda: queue.store.observe().provider.timeouts >= 5, "five timeouts")
        assert {event["timeout_s"] for event in worker.said("provider_timeout")} == {0.6}
        # The figures say so: the gate drains on timeouts, whatever the age is by then.
        telemetry = queue.store.observe()
        assert (telemetry.provider.rate_timeout or 0) >= queue.contract.thresholds.drain_provider_timeout_rate
        decision = decide(Figures.of(telemetry), queue.contract.thresholds)
        assert (decision.action, decision.reason) == ("drain", "provider_or_queue_age")
        assert queue.store.order("drain", "ada", "as decided").answer == "moved"
        wait_until(lambda: queue.store.observe().running == 0, "every slot free in the drain")
        calls = len(provider.calls)
        each_looks_again(queue, ("w1",))
        assert len(provider.calls) == calls, "nothing is started in a drain"


# 8. sidekiq#4633, #4992: a job that kills its worker comes back for ever.


def test_a_job_that_kills_its_worker_each_time_is_blocked_and_the_others_flow(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=500)
    poison = queue.accepted(payload=POISON)
    others = [queue.accepted() for _ in range(6)]
    started = 0
    worker: subprocess.Popen[bytes] | None = None
    try:

        def over() -> bool:
            nonlocal started, worker
            if worker is None or worker.poll() is not None:
                # What a supervisor does; it is bounded only if the job is.
                worker = subprocess.Popen(
                    command(FRAGILE, queue.url), start_new_session=True, stdout=subprocess.DEVNULL
                )
                started += 1
            queue.store.sweep()
            for job_id in queue.store.list_jobs("unknown"):
                by_ledger(queue.store, job_id)
            states = {queue.state(job_id) for job_id in others}
            return queue.state(poison) == "blocked" and states == {"succeeded"}

        wait_until(over, "the poison being blocked and the others done", 30)
    finally:
        if worker is not None:
            worker.kill()
            worker.wait()
    record = queue.record(poison)
    assert (record["cause"], record["attempt"], record["losses"]) == ("poison", "2", "2")
    assert started == 3, "a worker for each loss, and one that lives"
    assert queue.store.list_jobs("blocked") == (poison,)


# 10. bull#1087, bullmq#427: delayed jobs run in the pause, or all at once after it.


def test_delayed_jobs_stay_in_a_freeze_expire_with_a_record_on_thaw_and_the_rest_run_paced(
    open_queue: OpenQueueFunction,
) -> None:
    queue = open_queue(max_running=2)
    jobs = {}
    for number in range(10):
        job_id = queue.accepted(deadline_s=1.6 if number < 3 else 30)
        job = queue.claimed()
        assert queue.settle(job, Outcome.NOT_EXECUTED, delay_ms=300).state == "delayed"
        jobs[job_id] = number
    handler = Counting(0.1)
    with RunningWorker(queue.url, handler, max_inflight=4):
        assert queue.store.order("drain", "ada", "a freeze").answer == "moved"
        # All of them come due, and three past their deadline, while nothing is pulled.
        wait_until(lambda: queue.store.observe().delayed == 0, "the delays")
        wait_until(lambda: queue.counters().get("expired", 0) == 3, "the deadlines")
        each_looks_again(queue, ("w1",))
        assert handler.calls == Counter()
        assert queue.store.order("open", "ada", "thawed").answer == "moved"
        wait_until(lambda: sum(queue.state(job_id) == "succeeded" for job_id in jobs) == 7, "the others")
    late = [job_id for job_id, number in jobs.items() if number < 3]
    assert {queue.state(job_id) for job_id in late} == {"expired"}
    assert handler.calls == Counter([job_id for job_id in jobs if job_id not in late])
    assert handler.most_at_once == 2, "as many as the contract lets run, not all at once"


# 11. asynq#1144, kombu#1190: an evicted lease, an id without a record, a lock without an end.


def test_a_running_job_whose_lease_entry_is_gone_becomes_unknown_with_its_lease(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=500)
    lost, kept = queue.started(), queue.started()
    queue.client.zrem("queue:leases", lost.job_id)
    queue.sweep_until(lambda: queue.state(lost.job_id) == "unknown", "the lease")
    assert [entry["job"] for entry in queue.log("lease_put_back")] == [lost.job_id]
    assert queue.state(kept.job_id) in ("running", "unknown")


def test_lost_lease_entries_are_found_among_many_running_jobs(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_running=600, max_pending=600, lease_ms=60_000)
    queue.producer.submit_many(queue.producer.prepare("test-patch", "{}") for _ in range(500))
    running = [job.job_id for _ in range(5) for job in queue.claim(100).jobs]
    lost = [running[0], running[250], running[-1]]
    queue.client.zrem("queue:leases", *lost)

    queue.sweep_until(lambda: queue.client.zcard("queue:leases") == 500, "every entry")

    assert sorted(entry["job"] for entry in queue.log("lease_put_back")) == sorted(lost)
    assert queue.store.observe().running == 500


def test_a_lease_entry_that_is_gone_while_the_worker_lives_costs_it_nothing(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=900)
    release = threading.Event()

    async def waits(job: Job, timeout_s: float) -> Call:
        await asyncio.to_thread(release.wait, 5)
        return Call(CallKind.OK, 0.1, 200)

    job_id = queue.accepted()
    with RunningWorker(queue.url, waits) as worker:
        wait_until(lambda: queue.state(job_id) == "running", "the start")
        queue.client.delete("queue:leases")
        wait_until(lambda: queue.client.zscore("queue:leases", job_id) is not None, "the entry")
        release.set()
        wait_until(lambda: queue.state(job_id) == "succeeded", "its end")
        assert worker.said("lease_expired") == []


def test_an_id_whose_record_is_gone_is_reported_and_counts_nowhere(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=300, classes={"browse": {"deadline_s": 60, "cost_class": "browser", "max_running": 1}})
    job = queue.started("browse")
    waiting = queue.accepted("browse")
    assert queue.claim().jobs == (), "the class is full"
    queue.client.delete(f"job:{job.job_id}", f"payload:{job.job_id}")
    queue.sweep_until(lambda: not queue.client.exists("queue:leases", "running:browse"), "the place")
    assert {entry["job"] for entry in queue.log("entry_dropped")} == {job.job_id}
    assert not queue.client.exists("running:cost:browser")
    # The place that it held is free again.
    assert queue.claimed().job_id == waiting


@pytest.mark.parametrize("end", ["", "soon", "-1"])
def test_a_lock_without_an_end_holds_nobody_up(queue: OpenQueue, end: str) -> None:
    queue.client.hset("lock:controller", mapping={"owner": "somebody", "fence": "7", "lease_end": end})
    queue.client.persist("lock:controller")
    leads, fence = queue.store.lead("controller-1")
    assert leads
    assert int(fence) > 7
