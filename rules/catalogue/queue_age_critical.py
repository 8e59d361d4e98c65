"""Jobs wait so long that refusing new ones came too late: drain."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.conditions import age_expression
from rules.promql import number
from rules.scope import Scope
from rules.situations import age_cases
from sluicegate.records import AlertName

NAME = AlertName.QUEUE_AGE_CRITICAL


def build(scope: Scope) -> Alert:
    """Build the alert for age p95 ≥ `drain_age_p95_seconds` (row 3 of the decision table)."""
    bound = scope.thresholds.drain_age_p95_seconds
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="queue_age",
        when=f"age p95 ≥ {number(bound)} s",
        expression=age_expression(scope, bound),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.DRAIN,
        summary=f"Jobs on queue {scope.queue} age past the point of no return: it is drained.",
        description=(
            f"One waiting job in twenty has been eligible for at least {number(bound)} seconds although new jobs were"
            " refused before. Going on pulling would spend calls on jobs that can no longer meet their deadline."
        ),
        by_itself=(
            "The controller moves the gate to drain, and this alert's webhook opens the run drain-and-recover:"
            " snapshot, drain by deadline class, wait for the fix, canaries, burn down, reopen in steps."
        ),
        by_a_person=(
            "See what the run waits for: `sluicegate gate show`.",
            "Put the provider's path right, or point the workers at the known-good endpoint, and let the run go on.",
            "Do not open the gate by hand while the run is live; its canaries are the proof you would have to give.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=age_cases(scope, bound),
    )
