"""A job submitted now would wait for longer than its class's deadline."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import number
from rules.scope import Scope, guarded
from rules.situations import green, key, over, silent_when_frozen, under
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import CLASS_LABEL, CLASS_PREDICTED_WAIT_SECONDS, QUEUE_LABEL

NAME = AlertName.NEW_WORK_WILL_MISS


def build(scope: Scope) -> Alert:
    """Build the alert for a predicted wait above what a class's deadline leaves; without a prediction there is none.

    The wait is the class's own, as admission holds it against the deadline. No job is started with less than the margin
    left (contract §3), so that is lost from the beginning.
    """
    margin_s = scope.settings.contract.timings.margin_s
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="predicted_wait",
        when=f"a class's predicted wait is longer than its deadline less the {number(margin_s)} s that a start needs",
        expression=guarded(
            f"{scope.series(records.CLASS_PREDICTED_WAIT)}"
            f" > on ({QUEUE_LABEL}, {CLASS_LABEL}) {scope.series(records.CLASS_DEADLINE)} - {number(margin_s)}",
            scope.unless_recovering,
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.REJECT_NEW,
        summary=f"New jobs of class {{{{ $labels.{CLASS_LABEL} }}}} on queue {scope.queue} can't be done in time.",
        description=(
            "At the pace of the last completions, the backlog takes longer than the class's deadline leaves. A job"
            " accepted now would only be expired later."
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
    contract = scope.settings.contract
    margin_s = contract.timings.margin_s
    name, *others = sorted(contract.classes, key=lambda one: contract.classes[one].deadline_s)
    wait = key(CLASS_PREDICTED_WAIT_SECONDS, **{CLASS_LABEL: name})
    left_s = contract.classes[name].deadline_s - margin_s
    risk = {wait: Signal(over(left_s))}
    # Where classes have backlogs of their own, one of them waits for another's deadline and is well.
    longer = {
        key(CLASS_PREDICTED_WAIT_SECONDS, **{CLASS_LABEL: other}): Signal(
            under(contract.classes[other].deadline_s - margin_s)
        )
        for other in others
    }
    return (
        Case("just over what the shortest deadline leaves", risk, fires=True, labels={CLASS_LABEL: name}),
        Case("at it", {wait: Signal(left_s)}, fires=False),
        Case("just under it, and each other class under its own", {wait: Signal(under(left_s)), **longer}, fires=False),
        Case("too few completions to predict", {wait: None}, fires=False),
        Case("the kept backlog of a recovery", {**risk, **green(scope)}, fires=False),
        silent_when_frozen(risk),
    )
