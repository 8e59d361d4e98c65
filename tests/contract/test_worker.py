"""A worker on real servers and connections: what each end of a call does, drains, outages and leases (contract §3)."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis
import structlog
from structlog.typing import FilteringBoundLogger

from sluicegate.attempt import Attempt, Desk, Setting
from sluicegate.clock import SystemClock
from sluicegate.errors import StoreRejected, UsageError
from sluicegate.job import Call, CallKind, Job, Outcome
from sluicegate.leases import Leases
from sluicegate.provider_call import Handler
from sluicegate.queue_clock import QueueClock
from sluicegate.settings import WorkerSettings
from sluicegate.stop_report import Ended
from sluicegate.store_link import StoreLink
from sluicegate.thread_handler import ThreadHandler
from sluicegate.worker import Worker
from sluicegate.worker_rules import WorkerRules, rules_of
from tests.lossy import LossyRelay
from tests.queues import OpenQueue, OpenQueueFunction, contract_of, wait_until
from tests.recovery import Recovery
from tests.scripted_provider import Drop, Reply, ScriptedProvider, Seen, free_address
from tests.working import RunningWorker


class Gatekeeper:
    """Be a handler whose calls last until they are let go; notes each call with the timeout it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[Job, float]] = []
        self.at_once = 0
        self.most_at_once = 0
        self._let_go = threading.Event()

    def let_go(self) -> None:
        self._let_go.set()

    async def __call__(self, job: Job, timeout_s: float) -> Call:
        self.calls.append((job, timeout_s))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        started = time.monotonic()
        try:
            while not self._let_go.is_set():
                if time.monotonic() - started > timeout_s:
                    return Call(CallKind.TIMEOUT, timeout_s)
                await asyncio.sleep(0.005)
        finally:
            self.at_once -= 1
        return Call(CallKind.OK, time.monotonic() - started, 200)

    def called(self, job_id: str) -> bool:
        return any(job.job_id == job_id for job, _ in self.calls)


async def at_once(job: Job, timeout_s: float) -> Call:
    """Succeed at once."""
    return Call(CallKind.OK, 0.001, 200)


def ends(queue: OpenQueue, job_id: str, state: str, within_s: float = 10.0) -> None:
    wait_until(lambda: queue.state(job_id) == state, f"job {job_id} being {state}", within_s)


def in_turn(*replies: Reply | Drop) -> Callable[[Seen], Reply | Drop]:
    """Give a script that answers the first calls so, and every later one with 200."""
    left = list(replies)
    return lambda seen: left.pop(0) if left else Reply()


def test_a_job_is_posted_with_its_key_and_done(queue: OpenQueue) -> None:
    job_id = queue.accepted(payload='{"path":"a.py"}', idempotency_key="k1")
    with ScriptedProvider(in_turn()) as provider, RunningWorker(queue.url, provider.url) as worker:
        ends(queue, job_id, "succeeded")
        event = worker.wait_for("provider_call")
    body = {"job_id": job_id, "class": "lint-fix", "payload": '{"path":"a.py"}', "canary": False}
    assert provider.calls == [Seen("/v1/complete", "k1", body)]
    assert (event["job_id"], event["status"], event["attempt"]) == (job_id, 200, 1)
    assert event["latency_s"] < 5
    assert queue.client.hexists("job:k1", "confirmed")


def test_a_retry_has_the_same_key_and_waits_for_its_back_off(queue: OpenQueue) -> None:
    job_id = queue.accepted(idempotency_key="k1")
    with (
        ScriptedProvider(in_turn(Reply(503), Reply(404))) as provider,
        RunningWorker(queue.url, provider.url) as worker,
    ):
        ends(queue, job_id, "succeeded")
        assert [event["status"] for event in worker.said("provider_call")] == [503, 404, 200]
    assert [seen.key for seen in provider.calls] == ["k1"] * 3
    assert (queue.record(job_id)["attempt"], queue.record(job_id)["retries"]) == ("3", "2")


def test_retries_end_in_blocked(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(retry_budget=2, timings={"backoff_first_s": 0.05})
    job_id = queue.accepted()
    with ScriptedProvider(lambda seen: Reply(500)) as provider, RunningWorker(queue.url, provider.url):
        ends(queue, job_id, "blocked")
    assert len(provider.calls) == 2


def test_429_waits_as_asked_uses_no_retry_and_keeps_the_key(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(retry_budget=1, timings={"backoff_first_s": 0.05})
    job_id = queue.accepted(idempotency_key="k1")
    asked = Reply(429, {"Retry-After": "1"})
    started = time.monotonic()
    with ScriptedProvider(in_turn(asked, asked)) as provider, RunningWorker(queue.url, provider.url):
        ends(queue, job_id, "succeeded")
    assert time.monotonic() - started > 2
    assert [seen.key for seen in provider.calls] == ["k1"] * 3
    assert (queue.record(job_id)["attempt"], queue.record(job_id)["retries"]) == ("3", "0")


def test_a_refused_connection_uses_no_retry(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(retry_budget=1, timings={"backoff_first_s": 0.05})
    job_id = queue.accepted()
    with RunningWorker(queue.url, free_address()) as worker:
        event = worker.wait_for("provider_call", times=3)
        assert (event["kind"], event["status"]) == ("refused", None)
    assert queue.record(job_id)["retries"] == "0"
    assert queue.state(job_id) in ("ready", "delayed")


@pytest.mark.parametrize(("job_class", "state"), [("lint-fix", "succeeded"), ("send-mail", "unknown")])
def test_a_dropped_connection_is_repeated_only_where_that_is_safe(queue: OpenQueue, job_class: str, state: str) -> None:
    job_id = queue.accepted(job_class)
    with ScriptedProvider(in_turn(Drop())) as provider, RunningWorker(queue.url, provider.url) as worker:
        ends(queue, job_id, state)
        assert worker.said("provider_call")[0]["kind"] == "dropped"
    assert len(provider.calls) == (2 if state == "succeeded" else 1)


@pytest.mark.parametrize(("job_class", "state"), [("lint-fix", "succeeded"), ("send-mail", "unknown")])
def test_a_timeout_is_repeated_only_where_that_is_safe(
    open_queue: OpenQueueFunction, job_class: str, state: str
) -> None:
    queue = open_queue(timings={"call_timeout_max_s": 0.3, "backoff_first_s": 0.05})
    job_id = queue.accepted(job_class)
    with ScriptedProvider(in_turn(Reply(after_s=30))) as provider, RunningWorker(queue.url, provider.url) as worker:
        ends(queue, job_id, state)
        event = worker.wait_for("provider_timeout")
    assert (event["job_id"], event["attempt"], event["timeout_s"]) == (job_id, 1, 0.3)
    assert queue.store.observe().provider.timeouts == 1


def test_the_timeout_leaves_a_reserve_before_the_deadline(queue: OpenQueue) -> None:
    keeper = Gatekeeper()
    near, far = queue.accepted(deadline_s=1.5), queue.accepted(deadline_s=30)
    with RunningWorker(queue.url, keeper):
        wait_until(lambda: keeper.called(near) and keeper.called(far), "both calls")
        timeouts = {job.job_id: timeout_s for job, timeout_s in keeper.calls}
        keeper.let_go()
    assert 0.2 <= timeouts[near] < 1.3  # remaining − 1 s ÷ 5
    assert timeouts[far] == 2.0  # 10 s ÷ 5


def test_no_more_than_its_slots_run_at_once(queue: OpenQueue) -> None:
    keeper = Gatekeeper()
    ids = [queue.accepted() for _ in range(6)]
    with RunningWorker(queue.url, keeper, max_inflight=2):
        wait_until(lambda: keeper.at_once == 2, "two calls")
        assert queue.store.observe().worker_inflight == 2
        keeper.let_go()
        for job_id in ids:
            ends(queue, job_id, "succeeded")
    assert keeper.most_at_once == 2


def test_a_job_that_expires_while_all_slots_are_taken_is_reported(queue: OpenQueue) -> None:
    keeper = Gatekeeper()
    queue.accepted("refactor-plan")
    with RunningWorker(queue.url, keeper, max_inflight=1) as worker:
        wait_until(lambda: len(keeper.calls) == 1, "the first call")
        job_id = queue.accepted(deadline_s=0.6)
        event = worker.wait_for("job_expired")
        keeper.let_go()
    assert (event["job_id"], event["queue_class"], event["attempt"]) == (job_id, "lint-fix", 0)
    assert event["deadline_slack_s"] < 0.4
    assert not keeper.called(job_id)


def test_in_a_drain_each_lease_ends_as_its_slack_and_effects_allow_and_the_report_adds_up(
    open_queue: OpenQueueFunction,
) -> None:
    queue = open_queue(timings={"margin_s": 0.8})
    keeper = Gatekeeper()
    keeps = queue.accepted("refactor-plan")
    cut = queue.accepted(deadline_s=3)
    unsafe = queue.accepted("send-mail", deadline_s=3)
    dying = queue.accepted(deadline_s=1.6)
    with RunningWorker(queue.url, keeper, max_inflight=4) as worker:
        wait_until(lambda: len(keeper.calls) == 4, "four calls")
        waits = queue.accepted()
        wait_until(lambda: int(queue.record(dying)["deadline"]) - queue.store.observe().at_ms < 750, "too little time")
        moved = queue.store.order("drain", "ada", "test")
        ends(queue, cut, "ready", 1.5)
        ends(queue, unsafe, "unknown", 1.5)
        ends(queue, dying, "expired", 1.5)
        assert queue.state(keeps) == "running"
        assert worker.said("stop_pull") == []
        keeper.let_go()
        report = worker.wait_for("stop_pull")
        line = "action=stop_pull lease_released=4 expired=1 requeued=1 unknown=1 finished=1"
        wait_until(lambda: queue.store.workers()[0].report == line, "the report in the store")
        assert queue.store.workers()[0].epoch == moved.epoch
    parts = ("expired", "requeued", "unknown", "finished")
    assert report["lease_released"] == sum(report[part] for part in parts) == 4
    assert queue.state(keeps) == "succeeded"
    assert queue.state(waits) == "ready"
    assert queue.client.lrange("queue:pending", 0, -1) == [cut, waits]
    assert (queue.record(cut)["attempt"], queue.record(cut)["retries"]) == ("1", "0")


def test_a_drain_is_seen_and_confirmed_even_with_all_slots_taken(queue: OpenQueue) -> None:
    keeper = Gatekeeper()
    for _ in range(2):
        queue.accepted("refactor-plan")
    with RunningWorker(queue.url, keeper, max_inflight=2):
        wait_until(lambda: len(keeper.calls) == 2, "two calls")
        epoch = queue.store.order("drain", "ada", "test").epoch
        started = time.monotonic()
        wait_until(lambda: queue.store.workers()[0].epoch == epoch, "the worker's confirmation")
        assert time.monotonic() - started < 1.0  # 0.25 s, and a busy machine
        keeper.let_go()


def test_a_raw_drain_stops_a_worker_and_opening_lets_it_go_on(queue: OpenQueue) -> None:
    with RunningWorker(queue.url, at_once) as worker:
        ends(queue, queue.accepted(), "succeeded")
        queue.client.set("drain_state", "drain")
        report = worker.wait_for("stop_pull")
        assert report["lease_released"] == 0
        queue.store.order("open", "ada", "test")
        ends(queue, queue.accepted(), "succeeded")


def test_canaries_take_the_very_same_path_and_the_backlog_waits_for_green(queue: OpenQueue) -> None:
    backlog = queue.accepted()
    run = Recovery(queue)
    with ScriptedProvider(in_turn()) as provider, RunningWorker(queue.url, provider.url):
        assert run.step("recover") == "moved"
        keys = []
        for n in range(3):
            keys.append(run.put_canary(n))
            ends(queue, keys[-1], "succeeded")
        ends(queue, backlog, "succeeded")
    assert queue.store.observe().gate.green
    assert [(seen.key, seen.body["canary"]) for seen in provider.calls[:3]] == [(key, True) for key in keys]
    assert [seen.key for seen in provider.calls[3:]] == [backlog]


def test_a_worker_before_init_pulls_nothing_writes_only_its_presence_and_starts_when_it_comes(redis_url: str) -> None:
    with RunningWorker(redis_url, at_once) as worker:
        worker.wait_for("gate_seen", drain_state="drain")
        with redis.Redis.from_url(redis_url, decode_responses=True) as client:
            wait_until(lambda: client.exists("workers") == 1, "its presence")
            assert set(client.scan_iter()) == {"workers", "worker:w1"}
        said = worker.wait_for("queue_not_open")
        assert said["unblock"] == "sluicegate queue init --settings FILE --as NAME --reason WHY"
        queue = OpenQueue(redis_url, contract_of())
        ends(queue, queue.accepted(), "succeeded")
        assert len(worker.said("queue_not_open")) == 1
        queue.check()
        queue.close()


@pytest.mark.parametrize(
    "lost",
    [("queue:settings",), ("queue:settings", "control:gate", "control:epoch", "drain_state", "admission")],
    ids=["the contract", "all"],
)
def test_a_worker_of_a_queue_that_lost_its_keys_names_both_commands_that_bring_it_back(
    queue: OpenQueue, lost: tuple[str, ...]
) -> None:
    job_id = queue.accepted()
    queue.client.delete(*lost)
    with RunningWorker(queue.url, at_once) as worker:
        said = worker.wait_for("queue_not_open")
        assert said["unblock"] == (
            "sluicegate queue apply --settings FILE --as NAME --reason WHY, then "
            "sluicegate gate open --as NAME --reason WHY"
        )
        contract = queue.contract
        assert queue.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "as it said") == "moved"
        assert queue.store.order("open", "ada", "as it said").answer == "moved"
        ends(queue, job_id, "succeeded")


def test_an_outage_is_logged_once_and_outlived(queue: OpenQueue) -> None:
    with LossyRelay(queue.url) as relay, RunningWorker(relay.url, at_once) as worker:
        ends(queue, queue.accepted(), "succeeded")
        relay.refuse()
        worker.wait_for("store_unavailable")
        time.sleep(0.5)  # time for many a failed try
        relay.accept()
        worker.wait_for("store_available")
        ends(queue, queue.accepted(), "succeeded")
        assert len(worker.said("store_unavailable")) == 1


def test_lost_answers_start_and_end_each_job_once(queue: OpenQueue) -> None:
    calls: list[str] = []

    async def handler(job: Job, timeout_s: float) -> Call:
        calls.append(job.job_id)
        await asyncio.sleep(0.01)
        return Call(CallKind.OK, 0.01, 200)

    with LossyRelay(queue.url) as relay, RunningWorker(relay.url, handler):
        ids = [queue.accepted() for _ in range(30)]
        end = time.monotonic() + 30
        while not all(queue.state(job_id) == "succeeded" for job_id in ids):
            assert time.monotonic() < end
            # Each is one call's, and so bounded that back-off can't outlast the test however slow the machine is.
            relay.lose_next(1 if relay.lost < 20 else 0)
            time.sleep(0.08)  # some calls get through between two losses
        relay.lose_next(0)
        assert relay.lost > 3
    assert sorted(calls) == sorted(ids)
    assert queue.counters()["met"] == 30
    assert queue.counters().get("stale_writes", 0) == 0
    assert {queue.record(job_id)["attempt"] for job_id in ids} == {"1"}


def test_a_long_call_keeps_its_lease(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=600)
    keeper = Gatekeeper()
    job_id = queue.accepted()
    with RunningWorker(queue.url, keeper) as worker:
        wait_until(lambda: keeper.called(job_id), "the call")
        time.sleep(1.3)  # two leases; its timeout is 2 s
        assert queue.state(job_id) == "running"
        keeper.let_go()
        ends(queue, job_id, "succeeded")
        assert worker.said("lease_expired") == []


def test_a_call_past_its_timeout_and_grace_loses_its_lease_and_its_late_word_still_counts(
    open_queue: OpenQueueFunction,
) -> None:
    queue = open_queue(lease_ms=900, timings={"call_timeout_max_s": 0.2})
    done = threading.Event()

    async def deaf(job: Job, timeout_s: float) -> Call:
        while not done.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return Call(CallKind.OK, 3.0, 200)

    job_id = queue.accepted(deadline_s=60)
    with RunningWorker(queue.url, deaf) as worker:
        worker.wait_for("lease_expired")
        assert queue.state(job_id) == "unknown"
        done.set()
        ends(queue, job_id, "succeeded")
    (entry,) = queue.log("late_worker")
    assert entry["job"] == job_id


def test_a_handler_that_fails_is_an_ambiguous_end_and_ends_no_worker(queue: OpenQueue) -> None:
    failed: list[str] = []

    async def handler(job: Job, timeout_s: float) -> Call:
        if job.job_id not in failed:
            failed.append(job.job_id)
            raise ValueError("a bug")
        return Call(CallKind.OK, 0.001, 200)

    keyed, unsafe = queue.accepted(), queue.accepted("send-mail")
    with RunningWorker(queue.url, handler) as worker:
        ends(queue, keyed, "succeeded")
        ends(queue, unsafe, "unknown")
        first, second = worker.said("handler_failed")
    for said in (first, second):
        assert said["where"] == f"{__file__}:{handler.__code__.co_firstlineno + 3} handler", "the line of the bug"


def test_what_a_plain_function_has_done_counts_as_done_and_is_told_to_be_written_otherwise(queue: OpenQueue) -> None:
    done: list[str] = []

    def handler(job: Job, timeout_s: float) -> Call:
        done.append(job.job_id)
        return Call(CallKind.OK, 0.001, 200)

    ids = [queue.accepted(), queue.accepted("send-mail")]
    with RunningWorker(queue.url, handler) as worker:  # type: ignore[arg-type]  # as a hasty reader of the guide does
        for job_id in ids:
            ends(queue, job_id, "succeeded")
        assert "ThreadHandler(function)" in worker.said("handler_blocks")[0]["hint"]
    assert sorted(done) == sorted(ids), "nothing is done twice"


async def _cancels_itself_and_goes_on(job: Job, timeout_s: float) -> Call:
    """Do what a library of before `asyncio.timeout` does: it cancels its task, and takes nothing of that back."""
    _this_task().cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(10)
    return Call(CallKind.OK, 0.001, 200)


async def _cancels_itself_in_its_last_step(job: Job, timeout_s: float) -> Call:
    _this_task().cancel()
    return Call(CallKind.OK, 0.001, 200)


async def _leaves_a_timer_behind(job: Job, timeout_s: float) -> Call:
    asyncio.get_running_loop().call_soon(_this_task().cancel)
    return Call(CallKind.OK, 0.001, 200)


async def _tells_no_figures(job: Job, timeout_s: float) -> Call:
    return Call(CallKind.OK, math.nan, 200)


def _this_task() -> asyncio.Task[object]:
    task: asyncio.Task[object] | None = asyncio.current_task()
    assert task is not None
    return task


@pytest.mark.parametrize(
    "handler",
    [_cancels_itself_and_goes_on, _cancels_itself_in_its_last_step, _leaves_a_timer_behind, _tells_no_figures],
)
def test_a_call_that_was_made_counts_whatever_its_handler_did_to_its_task_or_its_figures(
    queue: OpenQueue, handler: Handler
) -> None:
    job_id = queue.accepted()
    with RunningWorker(queue.url, handler) as worker:
        ends(queue, job_id, "succeeded")
        assert not worker.said("attempt_failed")
    assert queue.record(job_id)["attempt"] == "1"


def _fails_at_once(job: Job, timeout_s: float) -> Awaitable[Call]:
    raise ValueError("a bug before the first step")


async def _fails_with_a_group(job: Job, timeout_s: float) -> Call:
    raise BaseExceptionGroup("of several", [KeyboardInterrupt()])


async def _cancels_itself(job: Job, timeout_s: float) -> Call:
    _this_task().cancel()
    await asyncio.sleep(10)
    raise AssertionError


async def _asks_for_an_odd_wait(job: Job, timeout_s: float) -> Call:
    return Call(CallKind.STATUS_5XX, -1.0, 503, "soon")  # type: ignore[arg-type]  # as a hasty handler does


@pytest.mark.parametrize("handler", [_fails_at_once, _fails_with_a_group, _cancels_itself, _asks_for_an_odd_wait])
def test_a_call_that_fails_in_whatever_way_is_settled_and_uses_a_retry(
    open_queue: OpenQueueFunction, handler: Handler
) -> None:
    queue = open_queue(retry_budget=1)
    job_id = queue.accepted()
    with RunningWorker(queue.url, handler) as worker:
        ends(queue, job_id, "blocked")
        assert not worker.said("attempt_failed")


def test_an_abandoned_attempt_says_no_word_to_the_store(queue: OpenQueue) -> None:
    job_id = queue.accepted()
    keeper = Gatekeeper()

    async def abandoned() -> None:
        setting, rules = setting_of(queue, keeper)
        leases = Leases(setting, lambda report: None)
        leases.start([queue.claimed()], rules)
        await in_time(lambda: len(keeper.calls) == 1)
        leases.abandon()
        assert await leases.all_ended(10)

    asyncio.run(abandoned())
    assert queue.state(job_id) == "running"


def test_a_call_that_stops_its_worker_in_its_own_last_step_is_settled_by_what_it_gave(queue: OpenQueue) -> None:
    job_id = queue.accepted("refactor-plan")

    async def work() -> None:
        async def handler(job: Job, timeout_s: float) -> Call:
            worker.stop()
            worker.stop()
            return Call(CallKind.OK, 0.001, 200)

        worker = Worker(queue.store, handler, WorkerSettings(max_inflight=1))
        await worker.run()

    asyncio.run(work())
    assert queue.state(job_id) == "succeeded"


def test_jobs_that_come_one_by_one_do_not_wait_for_the_next_look_at_the_gate(queue: OpenQueue) -> None:
    with RunningWorker(queue.url, at_once) as worker:
        worker.wait_for("gate_seen")
        waits = []
        for _ in range(12):
            started = time.monotonic()
            ends(queue, queue.accepted(), "succeeded")
            waits.append(time.monotonic() - started)
    assert sorted(waits)[6] < 0.1  # without being woken it looks every 0.25 s


def test_a_wake_key_that_somebody_overwrote_delays_a_worker_and_loses_nothing(queue: OpenQueue) -> None:
    with RunningWorker(queue.url, at_once) as worker:
        worker.wait_for("gate_seen")
        queue.client.set("queue:wake", "garbage")
        # It has said so, or it has been mended: a move of the gate does that, too.
        ends(queue, queue.accepted(), "succeeded")
        assert queue.client.type("queue:wake") != "string"


def test_a_worker_that_may_not_call_functions_runs_them_as_scripts_and_waits_as_well(queue: OpenQueue) -> None:
    queue.client.execute_command(
        "ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all", "-function", "-fcall"
    )
    try:
        with RunningWorker(queue.url.replace("redis://", "redis://limited:secret@"), at_once) as worker:
            worker.wait_for("gate_seen")
            ends(queue, queue.accepted(), "succeeded")
            queue.client.config_resetstat()
            time.sleep(1)  # in which it waits four times, and would ask without end if it did not
            assert queue.client.info("commandstats")["cmdstat_blpop"]["calls"] <= 8
    finally:
        queue.client.execute_command("ACL", "DELUSER", "limited")


def test_a_stopped_worker_lets_go_as_in_a_drain_and_says_goodbye(queue: OpenQueue) -> None:
    keeper = Gatekeeper()
    keeps, cut = queue.accepted("refactor-plan"), queue.accepted(deadline_s=2.1)
    with RunningWorker(queue.url, keeper) as worker:
        wait_until(lambda: len(keeper.calls) == 2, "two calls")
        worker.ask_to_stop()
        ends(queue, cut, "ready")
        assert queue.state(keeps) == "running"
        keeper.let_go()
        worker.stop()
        assert worker.said("stop_pull", lease_released=2, requeued=1, finished=1)
    assert queue.state(keeps) == "succeeded"
    assert queue.store.workers() == ()


def test_asked_twice_a_worker_ends_every_call_at_once(queue: OpenQueue) -> None:
    keeper = Gatekeeper()
    job_id = queue.accepted("refactor-plan")
    with RunningWorker(queue.url, keeper) as worker:
        wait_until(lambda: len(keeper.calls) == 1, "the call")
        started = time.monotonic()
        worker.ask_to_stop()
        worker.ask_to_stop()
        worker.stop()
        assert time.monotonic() - started < 1.5  # the call alone might have taken 2 s
    assert queue.state(job_id) == "ready"


def test_a_worker_sees_new_rules_of_the_contract(queue: OpenQueue) -> None:
    with RunningWorker(queue.url, at_once) as worker:
        worker.wait_for("contract_read")
        changed = contract_of(lease_ms=3000)
        assert queue.store.apply_settings(changed.for_redis(), changed.digest(), "ada", "test") == "moved"
        assert worker.wait_for("contract_read", times=2)["lease_s"] == 3.0


def test_two_workers_share_the_jobs_and_none_is_done_twice(queue: OpenQueue) -> None:
    calls: list[str] = []

    async def handler(job: Job, timeout_s: float) -> Call:
        calls.append(job.job_id)
        await asyncio.sleep(0.005)
        return Call(CallKind.OK, 0.005, 200)

    ids = [
        decision.job_id
        for decision in queue.producer.submit_many(queue.producer.prepare("test-patch", "{}") for _ in range(30))
    ]
    with RunningWorker(queue.url, handler, worker_id="w1"), RunningWorker(queue.url, handler, worker_id="w2"):
        for job_id in ids:
            ends(queue, job_id, "succeeded")
    assert sorted(calls) == sorted(ids)


def setting_of(queue: OpenQueue, handler: Gatekeeper) -> tuple[Setting, WorkerRules]:
    """Give what the attempts of a worker w1 share, and the rules of its queue."""
    rules = rules_of(queue.store.settings())
    assert rules is not None
    clock = SystemClock()
    log: FilteringBoundLogger = structlog.get_logger("test")
    link = StoreLink(log, clock)
    return Setting("w1", queue.store, link, handler, clock, QueueClock(clock), log, lambda: 0.5), rules


async def ended(queue: OpenQueue, job: Job, handler: Gatekeeper, *, stopped: bool = False) -> Ended:
    """Take a job that the test has claimed as w1 through its attempt, which may have been told to stop before."""
    setting, rules = setting_of(queue, handler)
    desk = Desk(setting)
    attempt = Attempt(job, rules, setting, desk)
    if stopped:
        attempt.stop()
    return await attempt.run((await desk.intents([job], rules.lease_s))[0])


def test_a_job_that_comes_again_while_its_attempt_before_still_hangs_is_begun_again(queue: OpenQueue) -> None:
    job_id = queue.accepted("refactor-plan")
    keeper = Gatekeeper()

    async def twice() -> None:
        setting, rules = setting_of(queue, keeper)
        leases = Leases(setting, lambda report: None)
        first = queue.claimed()
        leases.start([first], rules)
        await in_time(lambda: len(keeper.calls) == 1)
        # It has lost its lease, somebody has looked, and the same worker has a slot free.
        queue.settle(first, Outcome.UNKNOWN)
        queue.store.reconcile(job_id, "retry", actor="ledger", reason="keyed", source="ledger")
        again = queue.claimed()
        leases.start([again], rules)
        leases.start([again], rules)
        await in_time(lambda: len(keeper.calls) == 2)
        assert (leases.to_renew(), len(leases)) == ({job_id: again.fence}, 2)
        keeper.let_go()
        assert await leases.all_ended(10)
        assert len(leases) == 0

    asyncio.run(twice())
    assert queue.state(job_id) == "succeeded"
    assert queue.record(job_id)["attempt"] == "2"


async def in_time(holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, holds, "the call")


def test_a_claim_that_a_hand_has_made_none_of_is_told_as_rejected(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False)
    job_id = queue.accepted()
    assert len(queue.claim(request="r1").jobs) == 1
    queue.client.hset(f"job:{job_id}", "window", "soon")
    with pytest.raises(StoreRejected, match="something that is no claim"):
        queue.claim(request="r1")


def test_a_job_whose_gate_closed_after_its_claim_is_put_back_uncalled(queue: OpenQueue) -> None:
    job_id = queue.accepted()
    job = queue.claimed()
    queue.store.order("drain", "ada", "test")
    keeper = Gatekeeper()
    assert asyncio.run(ended(queue, job, keeper)) is Ended.REQUEUED
    assert keeper.calls == []
    assert (queue.state(job_id), queue.record(job_id)["retries"]) == ("ready", "0")


def test_a_drain_seen_between_the_gate_check_and_the_call_stops_the_call(queue: OpenQueue) -> None:
    job_id = queue.accepted()
    keeper = Gatekeeper()
    assert asyncio.run(ended(queue, queue.claimed(), keeper, stopped=True)) is Ended.REQUEUED
    assert keeper.calls == []
    assert queue.state(job_id) == "ready"


def test_a_worker_that_comes_too_late_makes_no_call(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=100)
    job_id = queue.accepted()
    job = queue.claimed()
    queue.sweep_until(lambda: queue.state(job_id) == "unknown", "the loss of its lease")
    keeper = Gatekeeper()
    assert asyncio.run(ended(queue, job, keeper)) is Ended.LOST
    assert keeper.calls == []
    assert queue.state(job_id) == "unknown"


def test_a_job_with_too_little_time_left_expires_uncalled_with_its_event(queue: OpenQueue) -> None:
    queue.accepted(deadline_s=1.0)
    job = queue.claimed()
    time.sleep(0.65)  # under the margin of 0.4 s
    keeper = Gatekeeper()
    with structlog.testing.capture_logs() as said:
        assert asyncio.run(ended(queue, job, keeper)) is Ended.EXPIRED
    assert keeper.calls == []
    (event,) = [entry for entry in said if entry["event"] == "job_expired"]
    assert (event["job_id"], event["queue_class"], event["attempt"]) == (job.job_id, "lint-fix", 1)
    assert event["deadline_slack_s"] < 0.4


def test_a_worker_looks_where_the_provider_is_whenever_the_gate_has_moved(queue: OpenQueue) -> None:
    def order(name: str, endpoint: str) -> str:
        queue.client.hset("control:endpoint", "current", endpoint)
        queue.store.order(name, "ada", "a move of the gate")
        job = queue.accepted()
        ends(queue, job, "succeeded")
        return job

    with ScriptedProvider(in_turn()) as first, ScriptedProvider(in_turn()) as second:
        with RunningWorker(queue.url, first.url):
            ends(queue, queue.accepted(), "succeeded")
            moved = order("hold", second.url)
            kept = order("release", "no address")
            back = order("hold", "")
        assert [seen.key for seen in second.calls] == [moved, kept]
        assert first.calls[-1].key == back


@pytest.mark.parametrize("said", [None, "ok", Call("ok", 0.001, 200)])  # type: ignore[arg-type]  # as a hasty handler does
def test_a_handler_that_says_nothing_of_use_is_an_ambiguous_end_too(open_queue: OpenQueueFunction, said: Any) -> None:
    queue = open_queue(retry_budget=1)

    async def handler(job: Job, timeout_s: float) -> Call:
        return said  # type: ignore[no-any-return]  # as above

    keyed, unsafe = queue.accepted(), queue.accepted("send-mail")
    with RunningWorker(queue.url, handler) as worker:
        ends(queue, keyed, "blocked")
        ends(queue, unsafe, "unknown")
        assert "which is no Call" in worker.said("handler_failed")[0]["error"]


def test_a_retry_after_of_endless_digits_is_a_wait_like_any_other(queue: OpenQueue) -> None:
    job_id = queue.accepted()
    answer = Reply(503, {"Retry-After": "9" * 400})
    with ScriptedProvider(lambda seen: answer) as provider, RunningWorker(queue.url, provider.url):
        ends(queue, job_id, "expired")
    assert queue.record(job_id)["cause"] == "no_time_for_retry"


@pytest.mark.parametrize("worker_id", ["", "a b", "two\nlines", "w" * 65, "\udcff", "é"])
def test_a_name_that_no_record_can_carry_is_refused(queue: OpenQueue, worker_id: str) -> None:
    with pytest.raises(UsageError, match="is not 1 to 64 printable ASCII characters"):
        Worker(queue.store, at_once, worker_id=worker_id)


def test_work_in_a_thread_keeps_its_lease_while_its_worker_goes_on(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=1000)

    def work(job: Job, timeout_s: float) -> Call:
        time.sleep(1.6)
        return Call(CallKind.OK, 1.6, 200)

    jobs = [queue.accepted() for _ in range(2)]
    with RunningWorker(queue.url, ThreadHandler(work)) as worker:
        for job_id in jobs:
            ends(queue, job_id, "succeeded")
        assert worker.said("lease_expired") == []


def test_work_in_a_thread_that_does_not_keep_its_time_keeps_its_slot_and_its_late_word_counts(
    open_queue: OpenQueueFunction,
) -> None:
    queue = open_queue(lease_ms=1500, timings={"call_timeout_max_s": 0.3, "call_timeout_min_s": 0.2})
    ends_now = threading.Event()

    def work(job: Job, timeout_s: float) -> Call:
        ends_now.wait(20)
        return Call(CallKind.OK, 2.0, 200)

    hung = queue.accepted("send-mail")
    with RunningWorker(queue.url, ThreadHandler(work), max_inflight=1) as worker:
        ends(queue, hung, "running")
        waits = queue.accepted("send-mail")
        worker.wait_for("lease_expired", job_id=hung, now="unknown")
        assert queue.state(waits) == "ready"
        ends_now.set()
        ends(queue, hung, "succeeded")
        ends(queue, waits, "succeeded")
    assert [entry["job"] for entry in queue.log("late_worker")] == [hung]


def test_work_in_a_thread_that_fails_is_an_ambiguous_end(queue: OpenQueue) -> None:
    def work(job: Job, timeout_s: float) -> Call:
        raise OSError("the vendor's client broke")

    job_id = queue.accepted("send-mail")
    with RunningWorker(queue.url, ThreadHandler(work)) as worker:
        ends(queue, job_id, "unknown")
        assert "the vendor's client broke" in worker.said("handler_failed")[0]["error"]
