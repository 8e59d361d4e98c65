"""Which alerts are there? One file each; the file and the alert share their name."""

from __future__ import annotations

from rules.alert import Alert
from rules.catalogue import (
    contract_exceeded,
    controller_silent,
    deadline_breach_forecast,
    deadline_budget_burn_fast,
    deadline_budget_burn_slow,
    deadline_slack_low,
    decision_not_applied,
    duplicate_side_effect,
    executor_dead,
    executor_holding,
    gate_flapping,
    gate_pinned,
    gate_stuck_closed,
    jobs_blocked,
    lease_leak,
    new_work_will_miss,
    provider_errors_high,
    provider_timeouts_high,
    queue_age_critical,
    queue_age_high,
    recovery_hold,
    reopened_unsafe,
    telemetry_absent,
    telemetry_blind,
    telemetry_damaged,
    telemetry_stale,
    threshold_drift,
    unknown_not_reconciled,
    unknown_replayed,
    unknown_rising,
    watchdog,
)
from rules.scope import Scope

# The order of the rule file and of every list: what closes the gate, what holds it, what is left over, what blinds us.
_ALERTS = (
    queue_age_high,
    deadline_slack_low,
    deadline_breach_forecast,
    new_work_will_miss,
    queue_age_critical,
    provider_errors_high,
    provider_timeouts_high,
    recovery_hold,
    duplicate_side_effect,
    reopened_unsafe,
    decision_not_applied,
    gate_pinned,
    gate_stuck_closed,
    gate_flapping,
    unknown_not_reconciled,
    unknown_rising,
    unknown_replayed,
    jobs_blocked,
    lease_leak,
    contract_exceeded,
    deadline_budget_burn_fast,
    deadline_budget_burn_slow,
    controller_silent,
    executor_dead,
    executor_holding,
    threshold_drift,
    telemetry_absent,
    telemetry_stale,
    telemetry_blind,
    telemetry_damaged,
    watchdog,
)


def build_catalogue(scope: Scope) -> tuple[Alert, ...]:
    """Build every alert of one queue from its settings."""
    return tuple(module.build(scope) for module in _ALERTS)
