"""What is watched holds, does not yet, is breached, or nobody can say; a gap or no data breaks the time it has held."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.context import Context
from runbooks.evidence import Sample
from runbooks.watch import Look, Standing, Watch, held_ms
from runbooks.where import Where
from sluicegate.settings import default_settings
from tests.unit.runbooks.readings import calls, reading

CONTEXT = Context(default_settings())
WHERE = Where("mine.yaml", "steps[0].wait_for")
AGE, RATE = "queue_age_p95_seconds < 15s", "provider_5xx_rate >= 5%"


def standing(watch: dict[str, Any], **changes: Any) -> Standing:
    return Watch.read(watch, WHERE).judge(reading(**changes), CONTEXT).standing


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"queue_age_p95_seconds": 14.9}, Standing.HOLDS),
        ({"queue_age_p95_seconds": 15.0}, Standing.NOT_YET),
        ({"queue_age_p95_seconds": 14.9, "provider": calls(100, status_5xx=5)}, Standing.BREACHED),
        ({"queue_age_p95_seconds": 15.0, "provider": calls(100, status_5xx=5)}, Standing.BREACHED),
        ({"queue_age_p95_seconds": 14.9, "provider": calls(3)}, Standing.NO_DATA),
        ({"queue_age_p95_seconds": float("nan")}, Standing.NO_DATA),
    ],
)
def test_all_that_must_hold_does_and_nothing_that_must_not(changes: dict[str, Any], expected: Standing) -> None:
    assert standing({"pass_if": [AGE], "fail_if": [RATE]}, **changes) is expected


def test_prometheus_figures_stand_beside_the_queues_own() -> None:
    watch = Watch.read({"pass_if": [AGE, {"promql": "up", "holds": "== 1"}]}, WHERE)
    assert watch.queries(CONTEXT) == ("up",)
    assert watch.worded(CONTEXT) == "queue_age_p95_seconds < 15s and up == 1"
    for sample, expected in ((1.0, Standing.HOLDS), (0.0, Standing.NOT_YET), (None, Standing.NO_DATA)):
        assert watch.judge(reading(), CONTEXT, {"up": Sample(sample)}).standing is expected


def test_why_it_does_not_hold_is_said() -> None:
    judged = Watch.read({"pass_if": [AGE], "fail_if": [RATE]}, WHERE).judge(
        reading(queue_age_p95_seconds=20.0, provider=calls(3)), CONTEXT
    )
    assert judged.why == (
        "queue_age_p95_seconds is 20.0, bound < 15s; provider_5xx_rate is 0.0, bound not >= 5% "
        "(3 calls with 0 failed are too few for a sample)"
    )


H, N, X = Standing.HOLDS, Standing.NOT_YET, Standing.NO_DATA


@pytest.mark.parametrize(
    ("looks", "held"),
    [
        ([], 0),
        ([(0, H)], 0),
        ([(0, H), (1000, H), (2000, H)], 2000),
        ([(0, H), (1000, N), (2000, H), (3000, H)], 1000),
        ([(0, H), (1000, X), (2000, H), (3000, H)], 1000),
        ([(0, H), (1000, H), (2000, N)], 0),
        ([(0, H), (2001, H), (3000, H)], 999),
        ([(0, H), (2000, H)], 2000),
    ],
)
def test_the_time_it_has_held_goes_back_to_the_last_break(looks: list[tuple[int, Standing]], held: int) -> None:
    assert held_ms([Look(at_ms, one) for at_ms, one in looks], longest_gap_ms=2000) == held


@given(st.lists(st.tuples(st.integers(1, 3000), st.sampled_from(list(Standing))), max_size=30))
def test_no_time_with_another_look_in_it_or_a_gap_counts(rows: list[tuple[int, Standing]]) -> None:
    looks, at_ms = [], 0
    for after_ms, one in rows:
        at_ms += after_ms
        looks.append(Look(at_ms, one))
    held = held_ms(looks, longest_gap_ms=2000)
    within = [look for look in looks if look.at_ms >= at_ms - held]
    if held:
        assert all(look.standing is H for look in within)
        gaps = [later.at_ms - earlier.at_ms for earlier, later in itertools.pairwise(within)]
        assert sum(gaps) == held
        assert max(gaps) <= 2000
