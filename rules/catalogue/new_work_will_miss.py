"""A job submitted now would wait for longer than its class's deadline."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.scope import Scope, guarded
from rules.situations import green, over, silent_when_frozen, under
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import CLASS_LABEL, PREDICTED_WAIT_SECONDS, QUEUE_LABEL

NAME = AlertName.NEW_WORK_WILL_MISS


def build(scope: Scope) -> Alert:
    """Build the alert for a predicted wait above a class's deadline; without a prediction there is none."""
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="predicted_wait",
        when="the predicted wait is longer than a class's deadline",
        expression=guarded(
            f"{scope.series(records.CLASS_DEADLINE)}"
            f" < on ({QUEUE_LABEL}) group_left () {scope.series(records.PREDICTED_WAIT)}",
            scope.unless_recovering,
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.REJECT_NEW,
        summary=f"New jobs of class {{{{ $labels.{CLASS_LABEL} }}}} on queue {scope.queue} can't be done in time.",
        description=(
            "At the pace of the last completions, the backlog takes longer than the class's deadline. A job accepted"
            " now would only be expired later."
        ),
        by_itself="Admission refuses jobs of the class with deadline_unreachable until the backlog is shorter.",
        by_a_person=(
            "Compare the backlog with the completions: is the load too high, or are the workers too slow?",
            "If the load is a burst, ask its sender to spread it.",
            "If it lasts, the class's deadline or the number of workers is wrong.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(scope),
    )


def _cases(scope: Scope) -> tuple[Case, ...]:
    wait = PREDICTED_WAIT_SECONDS
    classes = scope.settings.contract.classes
    shortest = min(classes, key=lambda name: classes[name].deadline_s)
    deadline_s = classes[shortest].deadline_s
    risk = {wait: Signal(over(deadline_s))}
    return (
        Case("just over the shortest deadline", risk, fires=True, labels={CLASS_LABEL: shortest}),
        Case("at it", {wait: Signal(deadline_s)}, fires=False),
        Case("just under it", {wait: Signal(under(deadline_s))}, fires=False),
        Case("too few completions to predict", {wait: None}, fires=False),
        Case("the kept backlog of a recovery", {**risk, **green(scope)}, fires=False),
        silent_when_frozen(risk),
    )
