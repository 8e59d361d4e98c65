"""Which alerts are there? One file each; the file and the alert share their name."""

from __future__ import annotations

from rules.alert import Alert
from rules.catalogue import (
    controller_silent,
    deadline_slack_low,
    duplicate_side_effect,
    gate_pinned,
    provider_errors_high,
    provider_timeouts_high,
    queue_age_critical,
    queue_age_high,
    recovery_hold,
    telemetry_absent,
    telemetry_stale,
    watchdog,
)
from rules.scope import Scope

# The order of the rule file and of every list: what closes the gate, what holds it, what blinds us.
_ALERTS = (
    queue_age_high,
    deadline_slack_low,
    queue_age_critical,
    provider_errors_high,
    provider_timeouts_high,
    recovery_hold,
    duplicate_side_effect,
    gate_pinned,
    controller_silent,
    telemetry_absent,
    telemetry_stale,
    watchdog,
)


def build_catalogue(scope: Scope) -> tuple[Alert, ...]:
    """Build every alert of one queue from its settings."""
    return tuple(module.build(scope) for module in _ALERTS)
