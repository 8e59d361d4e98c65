"""The provider answers with errors: every further call is wasted or worse, so drain."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.conditions import rate_expression
from rules.promql import number
from rules.scope import Scope
from rules.situations import rate_cases
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import PROVIDER_5XX_RATE

NAME = AlertName.PROVIDER_ERRORS_HIGH


def build(scope: Scope) -> Alert:
    """Build the alert for 5xx rate ≥ `drain_provider_5xx_rate` (row 3 of the decision table)."""
    bound = scope.thresholds.drain_provider_5xx_rate
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="provider_5xx",
        when=f"5xx rate ≥ {number(bound)}, sampled",
        expression=rate_expression(scope, records.PROVIDER_5XX_RATE, bound),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.DRAIN,
        summary=f"The provider of queue {scope.queue} answers with server errors: the queue is drained.",
        description=(
            f"At least {number(bound * 100)} % of the calls in the window were answered 5xx, on enough calls to mean"
            " it. Retries would multiply the load on a provider that is failing already."
        ),
        by_itself=(
            "The controller moves the gate to drain, and this alert's webhook opens the run drain-and-recover. The"
            " window starts anew when the run enters recovering and when it turns green, so the errors of the incident"
            " do not end the recovery."
        ),
        by_a_person=(
            "Read the provider's status and its last deploy.",
            "Put the path right, or point the workers at the known-good endpoint, then let the run go on.",
            "Canaries that fail again roll the run back by themselves; there is nothing to hurry.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=rate_cases(scope, PROVIDER_5XX_RATE, bound),
    )
