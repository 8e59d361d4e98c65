"""Jobs wait too long: refuse new ones before the waiting ones miss their deadlines."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.conditions import age_expression
from rules.promql import number
from rules.scope import Scope
from rules.situations import age_cases
from sluicegate.records import AlertName

NAME = AlertName.QUEUE_AGE_HIGH


def build(scope: Scope) -> Alert:
    """Build the alert for age p95 ≥ `reject_age_p95_seconds` (row 5 of the decision table)."""
    bound = scope.thresholds.reject_age_p95_seconds
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="queue_age",
        when=f"age p95 ≥ {number(bound)} s",
        expression=age_expression(scope, bound),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.REJECT_NEW,
        summary=f"Jobs on queue {scope.queue} wait too long: new ones are refused.",
        description=(
            f"One waiting job in twenty has been eligible for at least {number(bound)} seconds. Workers still pull, but"
            " slower than jobs arrive. Processor and memory may look fine; that proves nothing."
        ),
        by_itself=(
            "The controller moves the gate to reject_new: callers are refused with a time to come back, workers go on."
            " When age and slack are good again and stay so, it admits again."
        ),
        by_a_person=(
            "Look at the provider's latency and error rate first; a slow provider is the usual cause.",
            "Do not add or restart workers: they would make more calls that are too late.",
            "If a burst of submissions is the cause, ask its sender to come back later; nothing else is needed.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=age_cases(scope, bound),
    )
