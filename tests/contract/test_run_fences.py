"""A run's steps happen once and under the current fence alone; its ramp goes up in its time (contract §7)."""

from __future__ import annotations

import pytest

from sluicegate import keys
from sluicegate.job import CallKind, Outcome
from tests.contract.gate_actors import claimed_run, committed, opened, pass_canaries, run_key
from tests.queues import OpenQueue, OpenQueueFunction, wait_until


def dump(queue: OpenQueue, *but: str) -> dict[str, bytes]:
    """Give every key's value as the server would write it down."""
    names = sorted(name for name in queue.client.scan_iter() if name not in but)
    plain = queue.client.connection_pool.connection_kwargs
    with type(queue.client)(host=plain["host"], port=plain["port"]) as client:
        return {name: client.dump(name) for name in names}


@pytest.mark.parametrize("effect", ["recover", "rollback", "snapshot", "journal", "drain", "finish"])
def test_a_commit_under_an_old_fence_changes_nothing(queue: OpenQueue, effect: str) -> None:
    old = claimed_run(queue)
    queue.client.hset(run_key(queue), "lease_end", "0")
    taken = queue.store.claim_run("e2", "", "")
    assert taken.owned
    assert taken.fence != old
    before = dump(queue, keys.COUNTERS)

    answer = committed(queue, old, effect, "r1", keep_ms=0)

    assert answer.answer == "stale"
    assert dump(queue, keys.COUNTERS) == before
    assert queue.counters()["fenced_steps"] == 1
    assert committed(queue, taken.fence, "journal", "r2", executor="e2").answer == "moved"


def test_a_lease_that_a_clock_ahead_has_given_keeps_no_run_from_the_living(queue: OpenQueue) -> None:
    old, lease_ms = claimed_run(queue), round(queue.contract.timings.run_lease_s * 1000)
    ends = int(queue.client.hget(run_key(queue), "lease_end"))
    assert not queue.store.claim_run("e2", "", "").owned
    # The server's clock goes back an hour, by a failover or a step: its dead owner's lease is an hour ahead.
    queue.client.hset(run_key(queue), "lease_end", str(ends + 3_600_000))
    taken = queue.store.claim_run("e2", "", "")
    assert taken.owned
    assert int(queue.client.hget(run_key(queue), "lease_end")) <= queue.store.observe().at_ms + lease_ms
    assert committed(queue, old, "journal", "r1").answer == "stale"


def test_a_fence_only_grows(queue: OpenQueue) -> None:
    fences = [claimed_run(queue)]
    for executor in ("e2", "e3"):
        queue.client.hset(run_key(queue), "lease_end", "0")
        fences.append(queue.store.claim_run(executor, "", "").fence)
    assert committed(queue, fences[-1], "rollback", "r1").answer == "moved"
    fences.append(str(queue.client.hget(run_key(queue), "fence")))
    assert [int(fence) for fence in fences] == sorted({int(fence) for fence in fences})


@pytest.mark.parametrize("effect", ["recover", "rollback", "snapshot", "journal"])
def test_a_repeated_step_answers_the_same_and_happens_once(queue: OpenQueue, effect: str) -> None:
    fence = claimed_run(queue)
    first = committed(queue, fence, effect, "r1")
    before = dump(queue)

    assert committed(queue, fence, effect, "r1") == first
    assert first.answer == "moved"
    assert dump(queue) == before


def test_a_repeated_drain_tells_again_what_it_expired_and_that_there_is_more(queue: OpenQueue) -> None:
    for _ in range(101):
        queue.accepted()
    fence = claimed_run(queue)
    first = committed(queue, fence, "drain", "r1", keep_ms=3_600_000)
    assert (len(first.expired), first.more) == (100, True)

    assert committed(queue, fence, "drain", "r1", keep_ms=3_600_000) == first
    last = committed(queue, fence, "drain", "r2", keep_ms=3_600_000)
    assert (len(last.expired), last.more) == (1, False)


def test_the_last_step_of_a_run_can_be_repeated_after_its_end(queue: OpenQueue) -> None:
    fence = claimed_run(queue)
    committed(queue, fence, "rollback", "r1")
    fence = queue.store.claim_run("e1", "", "").fence
    first = committed(queue, fence, "finish", "r2")
    assert first.answer == "moved"
    assert committed(queue, fence, "finish", "r2") == first


def test_a_request_for_a_run_that_is_open_already_opens_no_second_one(queue: OpenQueue) -> None:
    first = opened(queue, trigger="person")
    again = opened(queue, trigger="person")
    assert (first.answer, again.answer, again.run) == ("moved", "moved", "run-1")
    assert again.epoch == first.epoch
    assert len(queue.store.runs()) == 1


def failing_calls(queue: OpenQueue, number: int) -> None:
    for _ in range(number):
        queue.settle(queue.claimed(), Outcome.RETRY, kind=CallKind.STATUS_5XX)


def test_the_gate_does_not_open_to_a_provider_that_fails_again_after_green(queue: OpenQueue) -> None:
    """Failed jobs wait for their retry: no ready job is old, and none is short of time."""
    for _ in range(5):
        queue.accepted()
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    failing_calls(queue, 4)
    failing_calls(queue, 1)

    assert committed(queue, fence, "reopen", "r2").answer == "refused"

    figures = queue.store.observe()
    assert figures.provider.status_5xx == 5
    assert figures.queue_age_p95_seconds < queue.contract.thresholds.recovered_age_p95_seconds
    assert figures.gate.drain_state == "recovering"


def test_the_gate_opens_on_failures_too_few_to_tell(queue: OpenQueue) -> None:
    for _ in range(4):
        queue.accepted()
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    failing_calls(queue, 4)
    assert committed(queue, fence, "reopen", "r2").answer == "moved"


def test_a_share_is_neither_raised_nor_the_last_one_while_a_breach_is_seen(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"ramp_step_s": 0.05}, canary_required_ok=3)
    for _ in range(5):
        queue.accepted()
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    assert committed(queue, fence, "reopen", "r2").answer == "moved"
    limit_ms = queue.store.observe().gate.limit_at_ms
    wait_until(lambda: queue.store.observe().at_ms > limit_ms, "the first share's time")
    failing_calls(queue, 5)

    assert committed(queue, fence, "ramp", "r3").answer == "refused"
    queue.client.hset(keys.GATE, "ramp", "100")
    assert committed(queue, fence, "ramp_end", "r4").answer == "refused"


def test_the_ramp_goes_up_in_its_steps_each_after_its_time_and_ends_the_run(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"ramp_step_s": 0.05}, canary_required_ok=3)
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    assert committed(queue, fence, "reopen", "r2").answer == "moved"

    seen = [queue.store.observe().gate.ramp_percent]
    for number in range(2):
        assert committed(queue, fence, "ramp_end", f"early-{number}").answer == "refused"
        request = iter(range(1000))
        wait_until(
            lambda number=number, request=request: (  # type: ignore[misc]
                committed(queue, fence, "ramp", f"ramp-{number}-{next(request)}").answer == "moved"
            ),
            "the next share",
        )
        seen.append(queue.store.observe().gate.ramp_percent)
    request = iter(range(1000))
    wait_until(lambda: committed(queue, fence, "ramp_end", f"end-{next(request)}").answer == "moved", "the ramp's end")

    assert seen == [10, 50, 100]
    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.ramp_percent, gate.run, gate.rollback_reason) == ("admit", None, None, None)


def test_a_run_and_its_steps_are_counted_once_with_the_time_they_took(queue: OpenQueue) -> None:
    fence = claimed_run(queue)
    for verb, request in (("fix", "a"), ("recover", "b")):
        committed(queue, fence, "journal", f"{request}1", verb=verb, phase="started")
        for _ in range(2):
            committed(queue, fence, "journal", f"{request}2", verb=verb, phase="done")
    committed(queue, fence, "journal", "c1", verb="canary", phase="started")
    wait_until(lambda: queue.store.observe().at_ms > started_at(queue) + 2, "some ms")
    committed(queue, fence, "rollback", "c2", verb="canary", phase="failed")
    fence = queue.store.claim_run("e1", "", "").fence
    committed(queue, fence, "finish", "d1", verb="canary", phase="done")

    counters = queue.counters()
    steps = {name: count for name, count in counters.items() if name.startswith("steps:")}
    assert steps == {"steps:fix:done": 1, "steps:recover:done": 1, "steps:canary:rolled_back": 1}
    assert counters["runs:rolled_back"] == 1
    assert counters["run_ms:rolled_back"] >= counters["step_ms:canary"] >= 2


def test_a_step_in_which_a_person_opens_the_gate_was_interrupted(queue: OpenQueue) -> None:
    fence = claimed_run(queue)
    committed(queue, fence, "journal", "a1", verb="fix", phase="started")
    queue.store.order("open_end_run", "ada", "enough")

    assert queue.counters()["steps:fix:interrupted"] == 1
    assert queue.counters()["runs:aborted"] == 1


def started_at(queue: OpenQueue) -> int:
    return int(queue.client.hget(run_key(queue), "step_at") or 0)


def endpoint_of(queue: OpenQueue) -> tuple[str, str]:
    record = queue.client.hgetall("control:endpoint")
    return record.get("current", ""), record.get("last_good", "")


def test_a_run_points_the_workers_elsewhere_once_and_its_rollback_points_them_back(queue: OpenQueue) -> None:
    fence = claimed_run(queue)
    assert committed(queue, fence, "endpoint", "r1", endpoint="http://good").answer == "moved"
    assert committed(queue, fence, "endpoint", "r2", endpoint="http://good").answer == "unchanged"
    assert (queue.store.endpoint(), endpoint_of(queue)) == ("http://good", ("http://good", ""))
    committed(queue, fence, "rollback", "r3")
    fence = queue.store.claim_run("e1", "", "").fence
    assert committed(queue, fence, "endpoint", "r4", endpoint="http://other").answer == "refused"
    assert committed(queue, fence, "restore_endpoint", "r5").answer == "moved"
    assert committed(queue, fence, "restore_endpoint", "r6").answer == "unchanged"
    assert queue.store.endpoint() == ""


def test_a_run_that_pointed_nobody_elsewhere_restores_nothing(queue: OpenQueue) -> None:
    queue.client.hset("control:endpoint", mapping={"current": "http://good", "last_good": "http://old", "run": "run-0"})
    fence = claimed_run(queue)
    committed(queue, fence, "rollback", "r1")
    fence = queue.store.claim_run("e1", "", "").fence
    assert committed(queue, fence, "restore_endpoint", "r2").answer == "unchanged"
    assert endpoint_of(queue) == ("http://good", "http://old")


@pytest.mark.parametrize("degraded", [False, True])
def test_a_rollback_whose_hooks_failed_never_reads_as_a_clean_one(queue: OpenQueue, degraded: bool) -> None:
    fence = claimed_run(queue)
    committed(queue, fence, "rollback", "r1")
    fence = queue.store.claim_run("e1", "", "").fence
    assert committed(queue, fence, "finish", "r2", degraded=degraded).answer == "moved"
    assert queue.store.runs()[0].state == ("rolled_back_degraded" if degraded else "rolled_back")
    assert queue.store.observe().gate.pin == "rolled_back"
