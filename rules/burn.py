"""Write the budget of missed deadlines as multi-window burn rates (Google SRE Workbook, chapter 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rules.promql import duration, number
from rules.scope import Scope
from sluicegate import records
from sluicegate.telemetry import OUTCOME_LABEL, QUEUE_LABEL

# The outcomes of a deadline that was not met; with `met` they are all there are.
MISSES = ("missed", "expired")
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Tier:
    """Hold one pair of windows: misses at `factor` times the budget over both, so that what is over ends soon."""

    factor: float
    long_s: float
    short_s: float


FAST = (Tier(14.4, _HOUR_S, 5 * _MINUTE_S), Tier(6, 6 * _HOUR_S, 30 * _MINUTE_S))
SLOW = (Tier(3, _DAY_S, 2 * _HOUR_S), Tier(1, 3 * _DAY_S, 6 * _HOUR_S))


def bound(scope: Scope, tier: Tier) -> float:
    """Give the share of missed deadlines from which on a tier fires; at 1 or more it never could."""
    return tier.factor * (1 - scope.settings.monitoring.deadline_objective)


def burn_expression(scope: Scope, tiers: Sequence[Tier]) -> str:
    """Write that one of the tiers burns, each with a least number of misses in its own long window."""
    return "\nor\n".join(_burns(scope, tier) for tier in tiers)


def tiers_in_words(tiers: Sequence[Tier]) -> str:
    """Say when the tiers fire."""
    said = (f"{number(tier.factor)} × over {duration(tier.long_s)} and {duration(tier.short_s)}" for tier in tiers)
    return f"misses burn their budget at {', or '.join(said)}"


def _burns(scope: Scope, tier: Tier) -> str:
    missed = scope.one_of(records.CLASS_OUTCOMES, OUTCOME_LABEL, MISSES)
    share = number(bound(scope, tier))
    least = scope.settings.monitoring.budget_min_misses
    return "\n".join(
        (
            f"{_share(scope, missed, tier.long_s)} > {share}",
            f"and {_share(scope, missed, tier.short_s)} > {share}",
            f"and {_grown(missed, tier.long_s)} >= {least}",
        )
    )


def _share(scope: Scope, missed: str, window_s: float) -> str:
    """Write misses ÷ all deadlines; without one in the window the share is no number, which is over no bound."""
    return f"{_grown(missed, window_s)} / {_grown(scope.series(records.CLASS_OUTCOMES), window_s)}"


def _grown(series: str, window_s: float) -> str:
    return f"sum by ({QUEUE_LABEL}) (increase({series}[{duration(window_s)}]))"
