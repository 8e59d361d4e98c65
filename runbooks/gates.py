"""Judge the gates of a run from the figures alone. Pure.

A failed check of the reopen gate means "measured and not met": the gate is asked again until its time is up. A failed
check of the canary or the burn-down gate is final: it is the run's rollback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runbooks.quantity import in_words, plain
from runbooks.verdict import CheckResult, Verdict, compared, overall, passed
from sluicegate.damage import AGES, DEADLINES, known, was_measured
from sluicegate.policy import Thresholds, rate_is_sampled
from sluicegate.settings import Contract
from sluicegate.telemetry import (
    CANARY_OK_COUNT,
    DEADLINE_SLACK_P10_SECONDS,
    DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED,
    PROVIDER_5XX_RATE,
    PROVIDER_TIMEOUT_RATE,
    QUEUE_AGE_P95_SECONDS,
    Part,
    Telemetry,
)

__all__ = [
    "CheckResult",
    "Measurement",
    "Verdict",
    "burn_down_forecast",
    "burn_down_gate",
    "canary_gate",
    "overall",
    "reopen_gate",
]

GREEN = "green"
_UNREADABLE = "the gate's own records cannot be read"
_DAMAGED = "somebody wrote over what this is counted from"


def reopen_gate(telemetry: Telemetry, contract: Contract) -> tuple[CheckResult, ...]:
    """Ask whether the gate may open: green, slack, age, the provider's two rates and duplicates (contract §7.7)."""
    bounds, gate = contract.thresholds, telemetry.gate
    known = _known(telemetry)
    return (
        compared(GREEN, float(gate.green) if known else None, "= 1", bool, _UNREADABLE),
        _slack(telemetry, bounds.recovered_slack_p10_seconds),
        _age(telemetry, bounds.recovered_age_p95_seconds),
        _rate(PROVIDER_5XX_RATE, telemetry.provider.rate_5xx, bounds.drain_provider_5xx_rate, telemetry, bounds),
        _rate(
            PROVIDER_TIMEOUT_RATE,
            telemetry.provider.rate_timeout,
            bounds.drain_provider_timeout_rate,
            telemetry,
            bounds,
        ),
        compared(
            DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED,
            float(gate.duplicates_unacknowledged) if known else None,
            "= 0",
            lambda number: number == 0,
            _UNREADABLE,
        ),
    )


def canary_gate(telemetry: Telemetry, contract: Contract, elapsed_s: float = 0.0) -> tuple[CheckResult, ...]:
    """Ask whether the canaries are green; `elapsed_s` counts from the move into recovering (contract §7.5).

    Without a class that declares a canary it stays inconclusive until a named person has passed the step.
    """
    gate, limit_s = telemetry.gate, contract.proof_s
    if not _known(telemetry):
        return (CheckResult(GREEN, None, "= 1", Verdict.INCONCLUSIVE, _UNREADABLE),)
    required = contract.canaries_required
    green = gate.green or gate.canary_ok_count >= required
    in_time = compared("elapsed_seconds", elapsed_s, f"< {in_words(limit_s)}", lambda spent: green or spent < limit_s)
    if not contract.canary_classes and not gate.green:
        why = "no class declares a canary: a named person passes the step"
        return (CheckResult(GREEN, 0.0, "= 1", Verdict.INCONCLUSIVE, why), in_time)
    successes = CheckResult(
        CANARY_OK_COUNT,
        float(gate.canary_ok_count),
        f">= {required}",
        Verdict.PASS if green else Verdict.INCONCLUSIVE,
        "" if green else "not yet",
    )
    failures = compared(
        "canary_failures",
        float(gate.canary_failures),
        f"< {contract.canary_failures_max}",
        lambda number: green or number < contract.canary_failures_max,
    )
    return (successes, failures, in_time)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Hold one look at the kept backlog: ms of Redis TIME, age p95 in seconds, unfinished jobs."""

    at_ms: int
    queue_age_p95_seconds: float
    backlog: int

    @classmethod
    def of(cls, telemetry: Telemetry) -> Measurement:
        return cls(telemetry.at_ms, telemetry.queue_age_p95_seconds, telemetry.unfinished)


def burn_down_gate(
    measurements: Sequence[Measurement], contract: Contract, now_ms: int | None = None
) -> tuple[CheckResult, ...]:
    """Ask whether the kept backlog burns down; the first measurement is the one at green (contract §7.6).

    In each whole window since green the age p95 falls by the declared seconds, or the backlog by the declared share of
    its size at green. It is done once the age is one the reopen gate accepts. `now_ms` is the last measurement's time
    unless given. Without a measurement the answer is inconclusive.
    """
    bound_s = contract.thresholds.recovered_age_p95_seconds
    bound = f"< {in_words(bound_s)}, or no backlog"
    if not measurements:
        return (CheckResult(QUEUE_AGE_P95_SECONDS, None, bound, Verdict.INCONCLUSIVE, "no measurement"),)
    last, limit_s = measurements[-1], contract.timings.burn_down_max_s
    now_ms = last.at_ms if now_ms is None else now_ms
    elapsed_s = (now_ms - measurements[0].at_ms) / 1000
    done = last.backlog == 0 or last.queue_age_p95_seconds < bound_s
    age = CheckResult(
        QUEUE_AGE_P95_SECONDS,
        last.queue_age_p95_seconds,
        bound,
        Verdict.PASS if done else Verdict.INCONCLUSIVE,
        "" if done else f"not yet, {last.backlog} jobs left",
    )
    whole = 0 if done else int(elapsed_s / contract.timings.burn_down_window_s)
    windows = tuple(_window(measurements, contract, number) for number in range(whole))
    in_time = compared("elapsed_seconds", elapsed_s, f"<= {in_words(limit_s)}", lambda spent: spent <= limit_s)
    return (age, *windows, in_time)


def burn_down_forecast(telemetry: Telemetry, contract: Contract) -> CheckResult:
    """Set backlog ÷ gross capacity, in seconds, against the longest burn-down allowed (contract §7.6)."""
    limit_s = contract.timings.burn_down_max_s
    expected_s = telemetry.unfinished / contract.capacity_per_s
    why = f"{telemetry.unfinished} unfinished jobs ÷ {plain(round(contract.capacity_per_s, 3))} jobs/s"
    return CheckResult(
        "burn_down_expected_seconds", expected_s, f"<= {in_words(limit_s)}", passed(expected_s <= limit_s), why
    )


def _known(telemetry: Telemetry) -> bool:
    return telemetry.gate.readable and telemetry.gate.initialised


def _rate(name: str, rate: float | None, bound: float, telemetry: Telemetry, bounds: Thresholds) -> CheckResult:
    """Judge a provider rate as `decide()` does: on too few calls it says nothing, and nothing keeps the gate closed."""
    words, window = f"< {plain(bound)}", telemetry.provider
    if not was_measured(telemetry, Part.PROVIDER):
        return CheckResult(name, None, words, Verdict.INCONCLUSIVE, _DAMAGED)
    if not rate_is_sampled(window, bounds) or window.failed < bounds.drain_min_failed:
        return CheckResult(
            name, rate, words, Verdict.PASS, f"{window.failed} of {window.calls} calls failed: too few to tell"
        )
    return compared(name, rate, words, lambda measured: measured < bound)


def _age(telemetry: Telemetry, bound_s: float) -> CheckResult:
    age = known(telemetry, telemetry.queue_age_p95_seconds, *AGES)
    return compared(QUEUE_AGE_P95_SECONDS, age, f"< {in_words(bound_s)}", lambda seconds: seconds < bound_s, _DAMAGED)


def _slack(telemetry: Telemetry, bound_s: float) -> CheckResult:
    bound = f"> {in_words(bound_s)}"
    if not was_measured(telemetry, Part.READY, *DEADLINES):
        return CheckResult(DEADLINE_SLACK_P10_SECONDS, None, bound, Verdict.INCONCLUSIVE, _DAMAGED)
    slack = telemetry.deadline_slack_p10_seconds
    if slack is None and telemetry.unfinished == 0:
        return CheckResult(DEADLINE_SLACK_P10_SECONDS, None, bound, Verdict.PASS, "no unfinished job, none at risk")
    return compared(DEADLINE_SLACK_P10_SECONDS, slack, bound, lambda seconds: seconds > bound_s)


def _window(measurements: Sequence[Measurement], contract: Contract, number: int) -> CheckResult:
    """Judge one whole window by the last looks at or before its two ends."""
    length_ms = contract.timings.burn_down_window_s * 1000
    opened_ms = measurements[0].at_ms + number * length_ms
    name = f"burn_down_window_{number + 1}"
    fall_s, share = contract.burn_down_min_age_fall_s, contract.burn_down_min_backlog_fall
    bound = f"age falls >= {in_words(fall_s)} or backlog >= {plain(share * 100)}%"
    first = _last_until(measurements, opened_ms)
    last = _last_until(measurements, opened_ms + length_ms)
    if first is None or last is None or last.at_ms <= opened_ms:
        return CheckResult(name, None, bound, Verdict.INCONCLUSIVE, "no measurement in this window")
    fell_s = first.queue_age_p95_seconds - last.queue_age_p95_seconds
    fell_jobs = first.backlog - last.backlog
    falls = fell_s >= fall_s or (fell_jobs > 0 and fell_jobs >= share * measurements[0].backlog)
    why = (
        f"age {plain(round(first.queue_age_p95_seconds, 1))}s to {plain(round(last.queue_age_p95_seconds, 1))}s, "
        f"backlog {first.backlog} to {last.backlog} of {measurements[0].backlog} at green"
    )
    return CheckResult(name, fell_s, bound, passed(falls), why)


def _last_until(measurements: Sequence[Measurement], until_ms: float) -> Measurement | None:
    return next((one for one in reversed(measurements) if one.at_ms <= until_ms), None)
