"""The gate that a run asks and the function that moves it say the same of the provider's window, at every bound."""

from __future__ import annotations

import pytest

from runbooks.gates import overall, reopen_gate
from runbooks.verdict import Verdict
from sluicegate import keys
from sluicegate.job import CallKind, Outcome
from sluicegate.policy import provider_breached
from tests.contract.gate_actors import claimed_run, committed, now_us, pass_canaries
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery

BUCKETS = 6

# Calls, of them answered 5xx, of them timed out → whether the gate may open. The bounds: 20 calls or 5 failed ones make
# a sample, 2 failed ones are the least, and 0.05 and 0.10 are the rates.
WINDOWS = {
    (0, 0, 0): True,
    (1, 1, 0): True,
    (4, 4, 0): True,
    (4, 0, 4): True,
    (5, 5, 0): False,
    (5, 0, 5): False,
    (5, 2, 3): False,
    (19, 2, 2): True,
    (19, 0, 4): True,
    (20, 1, 0): True,
    (20, 0, 1): True,
    (20, 1, 1): False,
    (20, 2, 0): False,
    (20, 0, 2): False,
    (21, 0, 2): True,
    (40, 2, 0): False,
    (41, 2, 0): True,
    (41, 2, 4): True,
    (40, 1, 3): True,
    (40, 1, 4): False,
    (1000, 49, 99): True,
    (1000, 50, 0): False,
    (1000, 0, 100): False,
}


# What somebody may have written over the newest bucket: text, and more failures than calls.
WRITTEN_OVER = (
    {"calls": "many", "5xx": "0", "timeout": "0"},
    {"calls": "40", "5xx": "garbage", "timeout": "0"},
    {"calls": "40", "5xx": "0", "timeout": "-1"},
    {"calls": "0", "5xx": "1", "timeout": "0"},
    {"calls": "3", "5xx": "2", "timeout": "2"},
)


def newest_bucket(queue: OpenQueue) -> str:
    """Give the key of the newest bucket of the current window, with none of the window's counts left."""
    window = queue.client.hget(keys.GATE, "window")
    bucket = now_us(queue) // 1000 * BUCKETS // round(queue.contract.timings.provider_window_s * 1000)
    for old in queue.client.scan_iter(f"provider:{window}:*"):
        queue.client.delete(old)
    return f"provider:{window}:{bucket}"


def show_window(queue: OpenQueue, calls: int, status_5xx: int, timeouts: int) -> None:
    """Put calls into the newest bucket of the current window, in place of what it counted."""
    queue.client.hset(newest_bucket(queue), mapping={"calls": calls, "5xx": status_5xx, "timeout": timeouts})


@pytest.mark.parametrize("window", WINDOWS)
def test_what_the_run_reads_is_what_the_move_demands(queue: OpenQueue, window: tuple[int, int, int]) -> None:
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    show_window(queue, *window)
    figures = queue.store.observe()
    assert (figures.provider.calls, figures.provider.status_5xx, figures.provider.timeouts) == window

    verdict = overall(reopen_gate(figures, queue.contract))
    moved = committed(queue, fence, "reopen", "r2").answer == "moved"

    assert moved is WINDOWS[window]
    assert verdict is (Verdict.PASS if moved else Verdict.FAIL)
    assert provider_breached(figures.provider, queue.contract.thresholds) is not moved


@pytest.mark.parametrize("counts", WRITTEN_OVER)
def test_counts_that_somebody_wrote_over_open_nothing(queue: OpenQueue, counts: dict[str, str]) -> None:
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    queue.client.hset(newest_bucket(queue), mapping=counts)

    assert overall(reopen_gate(queue.store.observe(), queue.contract)) is Verdict.INCONCLUSIVE
    assert committed(queue, fence, "reopen", "r2").answer == "refused"

    newest_bucket(queue)
    assert committed(queue, fence, "reopen", "r3").answer == "moved"


@pytest.mark.parametrize("counts", WRITTEN_OVER)
def test_counts_that_somebody_wrote_over_end_no_step_of_the_ramp(
    open_queue: OpenQueueFunction, counts: dict[str, str]
) -> None:
    queue = open_queue(timings={"ramp_step_s": 0.001})
    fence = claimed_run(queue)
    committed(queue, fence, "recover", "r1")
    pass_canaries(queue, fence)
    assert committed(queue, fence, "reopen", "r2").answer == "moved"
    queue.client.hset(newest_bucket(queue), mapping=counts)
    wait_until(lambda: queue.store.observe().at_ms > queue.store.observe().gate.limit_at_ms, "the step is over")

    assert committed(queue, fence, "ramp", "r3").answer == "refused"

    newest_bucket(queue)
    assert committed(queue, fence, "ramp", "r4").answer == "moved"


def test_canaries_that_failed_on_the_way_do_not_count_after_green(queue: OpenQueue) -> None:
    run = Recovery(queue)
    assert run.step("recover") == "moved"
    call = {"kind": CallKind.STATUS_5XX.value, "status": 503, "latency_ms": 5}
    for number in range(queue.contract.canary_failures_max - 1):
        queue.settle(run.canary(100 + number), Outcome.FAILED, call=call, cause="5xx")
    seen = queue.store.observe()
    assert seen.provider.status_5xx == queue.contract.canary_failures_max - 1
    run.green()

    seen = queue.store.observe()
    assert seen.gate.green
    assert (seen.provider.calls, seen.provider.failed) == (0, 0)
    assert run.step("reopen") == "moved"
