"""Decide from the figures alone: admit, reject_new, drain, hold or roll_back (contract §6, in its order).

One source of thresholds: the controller, the alert rules, the run's gates and the dashboards all read `Thresholds`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from sluicegate.gate import DrainState
from sluicegate.telemetry import ProviderWindow, Telemetry


class Action(StrEnum):
    """Name what the figures ask for; the gate decides what of it may be applied."""

    ADMIT = "admit"  # nothing is at risk
    REJECT_NEW = "reject_new"  # stop admitting, workers go on
    DRAIN = "drain"  # stop pulling as well
    HOLD = "hold"  # change nothing
    ROLL_BACK = "roll_back"  # close at once, audit the keys


class DecisionReason(StrEnum):
    """Name why; each belongs to one row of the table."""

    DUPLICATE_SIDE_EFFECT = "duplicate_side_effect"
    CANARY_NOT_GREEN = "canary_not_green"
    PROVIDER_OR_QUEUE_AGE = "provider_or_queue_age"
    SLACK_LOW = "slack_low"
    AGE_HIGH = "age_high"
    ADMISSION_THRESHOLD = "admission_threshold"
    ROLLBACK_ACTIVE = "rollback_active"
    PINNED = "pinned"
    NORMAL = "normal"


Number = TypeVar("Number", int, float)


def _threshold(default: Number, bound: str, says: str) -> Number:
    """Declare a threshold; its bound, which the settings check, and `says` are its line in the reference."""
    return field(default=default, metadata={"bound": bound, "says": says})


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hold the bounds of the decision table: ages and slack in seconds, rates as ratios 0..1, calls as counts."""

    reject_age_p95_seconds: float = _threshold(
        20.0, "> recovered_age_p95_seconds", "From this age p95 on, new jobs are refused."
    )
    drain_age_p95_seconds: float = _threshold(
        25.0, "> reject_age_p95_seconds", "From this age p95 on, the queue is drained."
    )
    reject_slack_p10_seconds: float = _threshold(5.0, "≥ 0", "Under this slack p10, new jobs are refused.")
    recovered_slack_p10_seconds: float = _threshold(
        15.0, "> reject_slack_p10_seconds", "The slack p10 must be above it before anything opens."
    )
    recovered_age_p95_seconds: float = _threshold(15.0, "> 0", "The age p95 must be under it before anything opens.")
    drain_provider_5xx_rate: float = _threshold(
        0.05, "> 0 and ≤ 1", "From this share of calls answered 5xx on, the queue is drained."
    )
    drain_provider_timeout_rate: float = _threshold(
        0.10, "> 0 and ≤ 1", "From this share of calls timed out on, the queue is drained."
    )
    sample_min_calls: int = _threshold(20, "≥ 1", "Calls in the window from which on its rates speak,")
    sample_min_failed: int = _threshold(5, "≥ 1", "or failed ones.")
    drain_min_failed: int = _threshold(2, "≥ 1", "On fewer failed calls a rate never drains.")


@dataclass(frozen=True, slots=True)
class Figures:
    """Hold what `decide()` looks at; None is a figure without a sample and triggers nothing."""

    age_p95_seconds: float
    slack_p10_seconds: float | None
    provider: ProviderWindow
    drain_state: DrainState
    canary_ok_count: int
    canaries_required: int
    green: bool
    duplicates_unacknowledged: int
    run_live: bool
    rollback_reason: str | None
    pinned: bool

    @classmethod
    def of(cls, telemetry: Telemetry) -> Figures:
        """Take the figures out of one reading of the queue."""
        gate = telemetry.gate
        return cls(
            age_p95_seconds=telemetry.queue_age_p95_seconds,
            slack_p10_seconds=telemetry.deadline_slack_p10_seconds,
            provider=telemetry.provider,
            drain_state=DrainState(gate.drain_state),
            canary_ok_count=gate.canary_ok_count,
            canaries_required=gate.canaries_required,
            green=gate.green,
            duplicates_unacknowledged=gate.duplicates_unacknowledged,
            run_live=gate.run is not None,
            rollback_reason=gate.rollback_reason,
            pinned=gate.pin is not None,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """Pair the action with its reason."""

    action: Action
    reason: DecisionReason


def rate_is_sampled(window: ProviderWindow, thresholds: Thresholds) -> bool:
    """Say whether the window holds enough calls to speak: 20 in all, or 5 failed (a total hang ends few calls)."""
    return window.calls >= thresholds.sample_min_calls or window.failed >= thresholds.sample_min_failed


def provider_breached(window: ProviderWindow, thresholds: Thresholds) -> bool:
    """Say whether a provider rate asks for a drain; never on fewer than `drain_min_failed` failed calls."""
    if not rate_is_sampled(window, thresholds) or window.failed < thresholds.drain_min_failed:
        return False
    rate_5xx, rate_timeout = window.rate_5xx, window.rate_timeout
    return (rate_5xx is not None and rate_5xx >= thresholds.drain_provider_5xx_rate) or (
        rate_timeout is not None and rate_timeout >= thresholds.drain_provider_timeout_rate
    )


def slack_recovered(slack_p10_seconds: float | None, thresholds: Thresholds) -> bool:
    """Say whether slack allows opening; no unfinished job means none at risk."""
    return slack_p10_seconds is None or slack_p10_seconds > thresholds.recovered_slack_p10_seconds


def exit_condition_holds(figures: Figures, thresholds: Thresholds) -> bool:
    """Say whether reject_new may count time towards admit: age and slack both well inside (contract §6)."""
    return figures.age_p95_seconds < thresholds.recovered_age_p95_seconds and slack_recovered(
        figures.slack_p10_seconds, thresholds
    )


def decide(figures: Figures, thresholds: Thresholds) -> Decision:
    """Walk the table of contract §6 from the top; the first row that matches decides."""
    recovering = figures.drain_state is DrainState.RECOVERING
    if figures.duplicates_unacknowledged > 0:
        return Decision(Action.ROLL_BACK, DecisionReason.DUPLICATE_SIDE_EFFECT)
    if recovering and not figures.green and figures.canary_ok_count < figures.canaries_required:
        return Decision(Action.HOLD, DecisionReason.CANARY_NOT_GREEN)
    if provider_breached(figures.provider, thresholds) or (
        not recovering and figures.age_p95_seconds >= thresholds.drain_age_p95_seconds
    ):
        return Decision(Action.DRAIN, DecisionReason.PROVIDER_OR_QUEUE_AGE)
    if recovering and not slack_recovered(figures.slack_p10_seconds, thresholds):
        return Decision(Action.HOLD, DecisionReason.SLACK_LOW)
    if recovering and figures.age_p95_seconds >= thresholds.recovered_age_p95_seconds:
        return Decision(Action.HOLD, DecisionReason.AGE_HIGH)
    if not recovering and _admission_threshold(figures, thresholds):
        return Decision(Action.REJECT_NEW, DecisionReason.ADMISSION_THRESHOLD)
    if not figures.run_live and figures.rollback_reason is not None:
        return Decision(Action.HOLD, DecisionReason.ROLLBACK_ACTIVE)
    if not figures.run_live and figures.pinned:
        return Decision(Action.HOLD, DecisionReason.PINNED)
    return Decision(Action.ADMIT, DecisionReason.NORMAL)


def _admission_threshold(figures: Figures, thresholds: Thresholds) -> bool:
    slack = figures.slack_p10_seconds
    return figures.age_p95_seconds >= thresholds.reject_age_p95_seconds or (
        slack is not None and slack < thresholds.reject_slack_p10_seconds
    )
