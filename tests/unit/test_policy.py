"""Does decide() follow the table of contract §6: each row, each bound on both sides, and the order of the rows?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.gate import DrainState
from sluicegate.policy import (
    Action,
    Decision,
    DecisionReason,
    Figures,
    Thresholds,
    decide,
    exit_condition_holds,
    provider_breached,
    rate_is_sampled,
    slack_recovered,
)
from sluicegate.telemetry import ProviderWindow

BOUNDS = Thresholds()


def window(calls: int, status_5xx: int = 0, timeouts: int = 0) -> ProviderWindow:
    return ProviderWindow(seconds=30.0, calls=calls, status_5xx=status_5xx, timeouts=timeouts)


CALM = Figures(
    age_p95_seconds=0.0,
    slack_p10_seconds=60.0,
    provider=window(100),
    drain_state=DrainState.ADMIT,
    canary_ok_count=0,
    canaries_required=3,
    green=False,
    duplicates_unacknowledged=0,
    run_live=False,
    rollback_reason=None,
    pinned=False,
)
GREEN = replace(CALM, drain_state=DrainState.RECOVERING, canary_ok_count=3, green=True, run_live=True)
CANARIES = replace(GREEN, canary_ok_count=2, green=False)

NORMAL = Decision(Action.ADMIT, DecisionReason.NORMAL)
DRAIN = Decision(Action.DRAIN, DecisionReason.PROVIDER_OR_QUEUE_AGE)
REJECT = Decision(Action.REJECT_NEW, DecisionReason.ADMISSION_THRESHOLD)
ROLL_BACK = Decision(Action.ROLL_BACK, DecisionReason.DUPLICATE_SIDE_EFFECT)
NOT_GREEN = Decision(Action.HOLD, DecisionReason.CANARY_NOT_GREEN)
SLACK_LOW = Decision(Action.HOLD, DecisionReason.SLACK_LOW)
AGE_HIGH = Decision(Action.HOLD, DecisionReason.AGE_HIGH)
ROLLBACK_ACTIVE = Decision(Action.HOLD, DecisionReason.ROLLBACK_ACTIVE)
PINNED = Decision(Action.HOLD, DecisionReason.PINNED)

NOT_RECOVERING = [state for state in DrainState if state is not DrainState.RECOVERING]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        # 1: a confirmed duplicate
        (replace(CALM, duplicates_unacknowledged=1), ROLL_BACK),
        (replace(CALM, duplicates_unacknowledged=0), NORMAL),
        # 2: canaries, by the frozen green or by the count
        (CANARIES, NOT_GREEN),
        (replace(CANARIES, canary_ok_count=3), NORMAL),
        (replace(GREEN, canary_ok_count=2), NORMAL),
        (replace(CANARIES, canary_ok_count=2, canaries_required=2), NORMAL),
        # 3: the provider and the age
        (replace(CALM, age_p95_seconds=25.0), DRAIN),
        (replace(CALM, age_p95_seconds=24.999), REJECT),
        (replace(CALM, provider=window(100, status_5xx=5)), DRAIN),
        (replace(CALM, provider=window(100, status_5xx=4)), NORMAL),
        (replace(CALM, provider=window(100, timeouts=10)), DRAIN),
        (replace(CALM, provider=window(100, timeouts=9)), NORMAL),
        (replace(GREEN, provider=window(100, status_5xx=5)), DRAIN),
        (replace(GREEN, age_p95_seconds=25.0), AGE_HIGH),
        # 4: recovered, in recovering only
        (replace(GREEN, slack_p10_seconds=15.0), SLACK_LOW),
        (replace(GREEN, slack_p10_seconds=15.001), NORMAL),
        (replace(GREEN, slack_p10_seconds=None), NORMAL),
        (replace(GREEN, age_p95_seconds=15.0), AGE_HIGH),
        (replace(GREEN, age_p95_seconds=14.999), NORMAL),
        (replace(GREEN, slack_p10_seconds=-3.0), SLACK_LOW),
        (replace(CALM, slack_p10_seconds=15.0), NORMAL),
        (replace(CALM, age_p95_seconds=15.0), NORMAL),
        # 5: the admission thresholds, outside recovering only
        (replace(CALM, age_p95_seconds=20.0), REJECT),
        (replace(CALM, age_p95_seconds=19.999), NORMAL),
        (replace(CALM, slack_p10_seconds=4.999), REJECT),
        (replace(CALM, slack_p10_seconds=5.0), NORMAL),
        (replace(CALM, slack_p10_seconds=None), NORMAL),
        # 6: a rollback or a pin without a live run
        (replace(CALM, rollback_reason="canary_failed"), ROLLBACK_ACTIVE),
        (replace(CALM, pinned=True), PINNED),
        (replace(CALM, rollback_reason="canary_failed", run_live=True), NORMAL),
        (replace(CALM, pinned=True, run_live=True), NORMAL),
        # 7: otherwise
        (CALM, NORMAL),
        (GREEN, NORMAL),
    ],
)
def test_the_row_decides(figures: Figures, expected: Decision) -> None:
    assert decide(figures, BOUNDS) == expected


# Rows that would each match by themselves, in the table's order: whichever stands first decides.
ILL_ADMITTING = {
    ROLL_BACK: {"duplicates_unacknowledged": 2},
    DRAIN: {"provider": window(100, timeouts=50), "age_p95_seconds": 30.0},
    REJECT: {"slack_p10_seconds": 1.0},
    ROLLBACK_ACTIVE: {"rollback_reason": "manual_operator_hold"},
    PINNED: {"pinned": True},
}
ILL_RECOVERING = {
    ROLL_BACK: {"duplicates_unacknowledged": 2},
    NOT_GREEN: {"canary_ok_count": 0, "green": False},
    DRAIN: {"provider": window(100, status_5xx=50)},
    SLACK_LOW: {"slack_p10_seconds": 1.0},
    AGE_HIGH: {"age_p95_seconds": 90.0},
    ROLLBACK_ACTIVE: {"rollback_reason": "manual_operator_hold"},
    PINNED: {"pinned": True},
}


@pytest.mark.parametrize(
    ("calm", "ill"),
    [(CALM, ILL_ADMITTING), (replace(GREEN, run_live=False), ILL_RECOVERING)],
    ids=["admitting", "recovering"],
)
def test_the_first_row_that_matches_decides(calm: Figures, ill: dict[Decision, dict[str, object]]) -> None:
    """With everything wrong at once, rows are healed from the top: each time the next one decides."""
    figures = calm
    for fields in ill.values():
        figures = replace(figures, **fields)  # type: ignore[arg-type]
    for expected, fields in ill.items():
        assert decide(figures, BOUNDS) == expected
        figures = replace(figures, **{name: getattr(calm, name) for name in fields})
    assert decide(figures, BOUNDS) == NORMAL


@pytest.mark.parametrize("state", NOT_RECOVERING)
def test_outside_recovering_the_state_itself_decides_nothing(state: DrainState) -> None:
    """What of a decision may be applied is the gate's matter."""
    for figures in (CALM, replace(CALM, age_p95_seconds=22.0), replace(CALM, age_p95_seconds=99.0)):
        assert decide(replace(figures, drain_state=state), BOUNDS) == decide(figures, BOUNDS)


@pytest.mark.parametrize(
    ("provider", "sampled", "breached"),
    [
        (window(0), False, False),
        (window(19, status_5xx=4), False, False),  # neither 20 calls nor 5 failed
        (window(4, timeouts=4), False, False),  # a hang that has ended too few calls
        (window(5, timeouts=5), True, True),  # a total hang ends few calls
        (window(19, status_5xx=5), True, True),
        (window(20, status_5xx=1), True, False),  # 5 %, but one failed call drains nothing
        (window(20, status_5xx=2), True, True),
        (window(20, timeouts=1, status_5xx=1), True, True),  # two failed, and 5xx at its bound
        (window(20, timeouts=2), True, True),
        (window(21, timeouts=2), True, False),  # 9.5 %
        (window(41, status_5xx=2), True, False),  # 4.9 %
        (window(40, status_5xx=2), True, True),
        (window(1000), True, False),
    ],
)
def test_a_rate_counts_only_with_enough_calls_behind_it(
    provider: ProviderWindow, sampled: bool, breached: bool
) -> None:
    assert rate_is_sampled(provider, BOUNDS) is sampled
    assert provider_breached(provider, BOUNDS) is breached


@pytest.mark.parametrize(
    ("age", "slack", "holds"),
    [
        (14.999, 15.001, True),
        (15.0, 60.0, False),
        (0.0, 15.0, False),
        (0.0, None, True),
        (20.0, None, False),
        (0.0, -1.0, False),
    ],
)
def test_the_exit_condition_of_reject_new(age: float, slack: float | None, holds: bool) -> None:
    figures = replace(CALM, age_p95_seconds=age, slack_p10_seconds=slack, drain_state=DrainState.REJECT_NEW)
    assert exit_condition_holds(figures, BOUNDS) is holds
    assert slack_recovered(slack, BOUNDS) is (slack is None or slack > 15)


figures_of_any_kind = st.builds(
    Figures,
    age_p95_seconds=st.floats(0, 1000),
    slack_p10_seconds=st.none() | st.floats(-1000, 1000),
    provider=st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 500)).map(
        lambda counts: window(sum(counts), status_5xx=counts[0], timeouts=counts[1])
    ),
    drain_state=st.sampled_from(DrainState),
    canary_ok_count=st.integers(0, 5),
    canaries_required=st.integers(1, 5),
    green=st.booleans(),
    duplicates_unacknowledged=st.integers(0, 2),
    run_live=st.booleans(),
    rollback_reason=st.none() | st.just("canary_failed"),
    pinned=st.booleans(),
)


@given(figures_of_any_kind)
def test_nothing_at_risk_is_the_only_way_to_admit(figures: Figures) -> None:
    """Whatever the figures, admit never comes over a breach, a duplicate, missing canaries or a pin without a run."""
    if decide(figures, BOUNDS).action is not Action.ADMIT:
        return
    assert figures.duplicates_unacknowledged == 0
    assert not provider_breached(figures.provider, BOUNDS)
    assert figures.run_live or not (figures.pinned or figures.rollback_reason)
    if figures.drain_state is DrainState.RECOVERING:
        assert figures.green or figures.canary_ok_count >= figures.canaries_required
        assert exit_condition_holds(figures, BOUNDS)
    else:
        assert figures.age_p95_seconds < 20
        assert figures.slack_p10_seconds is None or figures.slack_p10_seconds >= 5


@given(figures_of_any_kind, st.floats(0, 100), st.integers(0, 50))
def test_a_worse_world_never_gets_a_looser_decision(figures: Figures, older: float, more_failed: int) -> None:
    """An older queue, less slack and more failed calls of the same kind keep or tighten what is asked for."""
    order = [Action.ADMIT, Action.HOLD, Action.REJECT_NEW, Action.DRAIN, Action.ROLL_BACK]
    slack = figures.slack_p10_seconds
    worse = replace(
        figures,
        age_p95_seconds=figures.age_p95_seconds + older,
        slack_p10_seconds=None if slack is None else slack - older,
        provider=window(
            figures.provider.calls + more_failed,
            status_5xx=figures.provider.status_5xx + more_failed,
            timeouts=figures.provider.timeouts,
        ),
    )
    timeouts_alone = not provider_breached(worse.provider, BOUNDS) and provider_breached(figures.provider, BOUNDS)
    if not timeouts_alone:  # more 5xx calls thin the timeout rate out, but they raise the other
        asked, asked_then = decide(figures, BOUNDS).action, decide(worse, BOUNDS).action
        assert order.index(asked_then) >= order.index(asked)


@given(figures_of_any_kind)
def test_a_window_without_calls_asks_for_nothing(figures: Figures) -> None:
    """A figure without a sample triggers nothing."""
    silent = replace(figures, provider=window(0), slack_p10_seconds=None, age_p95_seconds=0.0)
    assert decide(silent, BOUNDS).action not in (Action.DRAIN, Action.REJECT_NEW)


def test_every_reason_is_reached() -> None:
    expected = {ROLL_BACK, NOT_GREEN, DRAIN, SLACK_LOW, AGE_HIGH, REJECT, ROLLBACK_ACTIVE, PINNED, NORMAL}
    assert {decision.reason for decision in expected} == set(DecisionReason)
    assert {decision.action for decision in expected} == set(Action)
