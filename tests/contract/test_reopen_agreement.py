"""The gate that a run asks and the function that moves it say the same of the provider's window, at every bound."""

from __future__ import annotations

import pytest

from runbooks.gates import overall, reopen_gate
from runbooks.verdict import Verdict
from sluicegate import keys
from sluicegate.policy import provider_breached
from tests.contract.gate_actors import claimed_run, committed, now_us, pass_canaries
from tests.queues import OpenQueue

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


def show_window(queue: OpenQueue, calls: int, status_5xx: int, timeouts: int) -> None:
    """Put calls into the newest bucket of the current window, in place of what it counted."""
    window = queue.client.hget(keys.GATE, "window")
    bucket = now_us(queue) // 1000 * BUCKETS // round(queue.contract.timings.provider_window_s * 1000)
    for old in queue.client.scan_iter(f"provider:{window}:*"):
        queue.client.delete(old)
    queue.client.hset(f"provider:{window}:{bucket}", mapping={"calls": calls, "5xx": status_5xx, "timeout": timeouts})


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
