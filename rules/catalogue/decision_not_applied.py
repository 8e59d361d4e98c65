"""The controller decided to close and the gate is still open."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.scope import Scope, guarded
from rules.situations import gate, key, silent_when_frozen
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.policy import Action, DecisionReason
from sluicegate.records import AlertName
from sluicegate.telemetry import ACTION_LABEL, DECISION, QUEUE_LABEL, REASON_LABEL

NAME = AlertName.DECISION_NOT_APPLIED


def build(scope: Scope) -> Alert:
    """Build the alert for a last decision that tightens, while the gate is looser than that."""
    tighten = scope.one_of(records.DECISION, ACTION_LABEL, (Action.DRAIN, Action.ROLL_BACK))
    reject = scope.series(records.DECISION, **{ACTION_LABEL: Action.REJECT_NEW})
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="decision",
        when="the last decision tightens, and the gate is looser than that",
        expression=guarded(
            "(",
            f"  {tighten} == 1 unless on ({QUEUE_LABEL}) {scope.drain_state(DrainState.DRAIN)} == 1",
            "  or",
            f"  {reject} == 1 and on ({QUEUE_LABEL}) {scope.drain_state(DrainState.ADMIT)} == 1",
            ")",
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"The gate of queue {scope.queue} is open although the controller decided to close it.",
        description=(
            f"The last decision is {{{{ $labels.{ACTION_LABEL} }}}} ({{{{ $labels.{REASON_LABEL} }}}}), and it has not"
            " taken effect for several ticks. Jobs are accepted or pulled that should not be."
        ),
        by_itself="Decision and move are one step of the controller's tick, and it goes on trying twice a second.",
        by_a_person=(
            "Close it by name: `sluicegate gate drain --as YOU --reason WHY`.",
            "Then read the automation service's log: what was its move answered?",
            "`sluicegate queue doctor` says whether the server refuses writes.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    def decided(action: Action, reason: DecisionReason) -> str:
        return key(DECISION, **{ACTION_LABEL: action, REASON_LABEL: reason})

    normal = decided(Action.ADMIT, DecisionReason.NORMAL)
    drain = decided(Action.DRAIN, DecisionReason.PROVIDER_OR_QUEUE_AGE)
    reject = decided(Action.REJECT_NEW, DecisionReason.ADMISSION_THRESHOLD)
    rolled = decided(Action.ROLL_BACK, DecisionReason.DUPLICATE_SIDE_EFFECT)
    off = {normal: Signal(0), drain: Signal(0), reject: Signal(0), rolled: Signal(0)}
    of_drain = {ACTION_LABEL: Action.DRAIN.value, REASON_LABEL: DecisionReason.PROVIDER_OR_QUEUE_AGE.value}
    of_reject = {ACTION_LABEL: Action.REJECT_NEW.value, REASON_LABEL: DecisionReason.ADMISSION_THRESHOLD.value}
    of_roll_back = {ACTION_LABEL: Action.ROLL_BACK.value, REASON_LABEL: DecisionReason.DUPLICATE_SIDE_EFFECT.value}
    to_drain, to_reject = {**off, drain: Signal(1)}, {**off, reject: Signal(1)}
    return (
        Case("drain, and it admits", to_drain, fires=True, labels=of_drain),
        Case("drain, and it rejects only", {**to_drain, **gate(DrainState.REJECT_NEW)}, True, of_drain),
        Case("drain, and it recovers", {**to_drain, **gate(DrainState.RECOVERING)}, True, of_drain),
        Case("roll back, and it admits", {**off, rolled: Signal(1)}, fires=True, labels=of_roll_back),
        Case("reject_new, and it admits", to_reject, fires=True, labels=of_reject),
        Case("reject_new, and it rejects", {**to_reject, **gate(DrainState.REJECT_NEW)}, fires=False),
        Case("reject_new, and it is tighter", {**to_reject, **gate(DrainState.DRAIN)}, fires=False),
        Case("drain, and it drains", {**to_drain, **gate(DrainState.DRAIN)}, fires=False),
        Case("normal", {**off, normal: Signal(1)}, fires=False),
        Case("no decision yet", off, fires=False),
        silent_when_frozen(to_drain),
    )
