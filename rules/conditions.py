"""The two conditions that several alerts share: a queue that ages, and a provider that fails."""

from __future__ import annotations

from rules.promql import number
from rules.scope import Scope, guarded
from sluicegate import records
from sluicegate.records import Record
from sluicegate.telemetry import QUEUE_LABEL


def age_expression(scope: Scope, bound: float) -> str:
    """Write age p95 ≥ `bound` seconds, with its guards."""
    return guarded(
        f"{scope.series(records.QUEUE_AGE)} >= {number(bound)}",
        scope.unless_empty,
        scope.unless_recovering,
        scope.unless_frozen,
    )


def rate_expression(scope: Scope, rate: Record, bound: float) -> str:
    """Write rate ≥ `bound` where the window holds a sample and enough failed calls (contract §2)."""
    bounds = scope.thresholds
    calls = scope.series(records.PROVIDER_WINDOW_CALLS)
    failed = scope.series(records.PROVIDER_WINDOW_FAILED_CALLS)
    return guarded(
        f"{scope.series(rate)} >= {number(bound)}",
        f"and on ({QUEUE_LABEL}) ({calls} >= {bounds.sample_min_calls} or {failed} >= {bounds.sample_min_failed})",
        f"and on ({QUEUE_LABEL}) {failed} >= {bounds.drain_min_failed}",
        scope.unless_unproven,
        scope.unless_frozen,
    )
