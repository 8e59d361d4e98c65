"""What the backlog limit's rules alone come to, without a queue."""

from __future__ import annotations

import pytest

from bench.overload.simulation import simulated
from bench.overload_bench import BURST, STEADY


def test_eight_times_the_load_breaks_no_promise_and_starves_no_class() -> None:
    """Looks at the ends of the classes alone let a long class come due all at once: 0.6 % missed, 0.70 of its share."""
    found = simulated(STEADY[2], gap_ms=2)
    assert found.missed < 0.002
    assert found.in_time > 0.94
    assert found.least_fair > 0.88


def test_a_burst_whose_mean_fits_is_nearly_all_in_time() -> None:
    found = simulated(BURST, gap_ms=2)
    assert found.missed == 0
    assert found.in_time == pytest.approx(0.97, abs=0.01)
