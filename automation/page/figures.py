"""Show the nine fields: each with its value, what it is compared with, how near that is, and its last minutes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from automation.page.plot import Band, Plot, bands, plot
from automation.page.samples import Sample, figures
from automation.page.words import count, percent, seconds
from sluicegate import telemetry as names
from sluicegate.damage import was_measured
from sluicegate.policy import Thresholds, provider_breached, rate_is_sampled
from sluicegate.telemetry import Telemetry


class Level(StrEnum):
    """Name how a figure stands to its bounds."""

    CALM = "calm"  # inside
    NEAR = "near"  # outside the bound that asks for less than a drain
    OVER = "over"  # outside the bound that closes
    NONE = "none"  # no sample, or nothing to compare it with


@dataclass(frozen=True, slots=True)
class Card:
    """Show one field; `bounds` says in words what the lines in its plot stand for."""

    name: str
    value: str
    level: Level
    bounds: str
    plot: Plot | None = None
    bands: tuple[Band, ...] = ()


def cards(telemetry: Telemetry, samples: Sequence[Sample], span_s: float) -> tuple[Card, ...]:
    """Give the nine, in their order."""
    gate, bounds = telemetry.gate, _thresholds(telemetry)
    values = figures(telemetry)
    too_few = "" if rate_is_sampled(telemetry.provider, bounds) else "; too few calls to count yet"

    def card(
        name: str, words: Callable[[float], str], lines: Sequence[tuple[float, str]], level: Level, says: str
    ) -> Card:
        value = values[name]
        shown = "no sample" if value is None else words(value)
        drawn = plot(samples, name, span_s, lines, f"{name} over the last {seconds(span_s)}, now {shown}")
        return Card(name, shown, Level.NONE if value is None else level, says, drawn)

    age = values[names.QUEUE_AGE_P95_SECONDS]
    slack = values[names.DEADLINE_SLACK_P10_SECONDS]
    reject_s, drain_s = bounds.reject_age_p95_seconds, bounds.drain_age_p95_seconds
    low_s, safe_s = bounds.reject_slack_p10_seconds, bounds.recovered_slack_p10_seconds
    breached = provider_breached(telemetry.provider, bounds)
    rates = (
        (names.PROVIDER_5XX_RATE, bounds.drain_provider_5xx_rate),
        (names.PROVIDER_TIMEOUT_RATE, bounds.drain_provider_timeout_rate),
    )
    return (
        card(
            names.QUEUE_AGE_P95_SECONDS,
            seconds,
            ((reject_s, Level.NEAR), (drain_s, Level.OVER)),
            _level(age, lambda it: it >= reject_s, lambda it: it >= drain_s),
            f"reject from {seconds(reject_s)}, drain from {seconds(drain_s)}",
        ),
        card(names.OLDEST_JOB_AGE_SECONDS, seconds, (), Level.NONE, "no bound of its own"),
        card(
            names.DEADLINE_SLACK_P10_SECONDS,
            seconds,
            ((safe_s, Level.NEAR), (low_s, Level.OVER)),
            _level(slack, lambda it: it <= safe_s, lambda it: it < low_s),
            f"reject under {seconds(low_s)}, opens above {seconds(safe_s)}",
        ),
        *(
            card(
                name,
                percent,
                ((bound, Level.OVER),),
                Level.OVER if breached and (values[name] or 0) >= bound else Level.CALM,
                f"drain from {percent(bound)}{too_few}",
            )
            for name, bound in rates
        ),
        card(names.WORKER_INFLIGHT, count, (), Level.NONE, "no bound here: claims hold the running limits"),
        Card(names.DRAIN_STATE, gate.drain_state, Level.NONE, "its last minutes", None, bands(samples, span_s)),
        card(
            names.CANARY_OK_COUNT,
            count,
            ((float(gate.canaries_required), Level.CALM),) if gate.canaries_required else (),
            Level.NONE,
            f"{gate.canaries_required} in a row make green",
        ),
        Card(
            names.ROLLBACK_REASON,
            gate.rollback_reason or "none",
            Level.OVER if gate.rollback_reason else Level.CALM,
            "set by a rollback, cleared by a reopening that lasts",
        ),
    )


def _level(value: float | None, near: Callable[[float], bool], over: Callable[[float], bool]) -> Level:
    if value is None:
        return Level.NONE
    if over(value):
        return Level.OVER
    return Level.NEAR if near(value) else Level.CALM


def _thresholds(telemetry: Telemetry) -> Thresholds:
    """Give the bounds in force, as the queue has them; the defaults where it has none."""
    known = {name: value for name, value in telemetry.thresholds.items() if name in Thresholds.__dataclass_fields__}
    return Thresholds(**known)  # type: ignore[arg-type]  # counts come as floats, and compare alike


def damage(telemetry: Telemetry) -> str:
    """Say which figures are missing because somebody wrote over what they are counted from, '' where none is."""
    if not was_measured(telemetry):
        return "The stored contract is lost, so no figure says anything."
    parts = ", ".join(sorted(telemetry.damaged))
    return f"Damaged by hand, so not shown: {parts}." if parts else ""
