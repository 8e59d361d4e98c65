"""The gate is closed and only a named person may open it: remind them."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.scope import Scope, guarded
from rules.situations import gate, key
from sluicegate import records
from sluicegate.gate import DrainState, PinReason
from sluicegate.records import AlertName
from sluicegate.telemetry import GATE_PINNED, QUEUE_LABEL, REASON_LABEL

NAME = AlertName.GATE_PINNED


def build(scope: Scope) -> Alert:
    """Build the alert for a gate that is closed and pinned; Alertmanager repeats it until a person acts."""
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="gate",
        when="the gate is closed and pinned",
        expression=guarded(
            f"{scope.series(records.GATE_PINNED)} == 1",
            f"unless on ({QUEUE_LABEL}) {scope.drain_state(DrainState.ADMIT)} == 1",
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"Queue {scope.queue} is closed and waits for a named person.",
        description=(
            "The gate is closed and pinned ({{ $labels.reason }}). While it is, no webhook and no timer opens a run,"
            " and nothing reopens admission. Callers are being refused all the time."
        ),
        by_itself="Nothing: a pin means that Sluicegate may not decide this. The page repeats until a person has.",
        by_a_person=(
            "Read why: `sluicegate gate show`, and the report of the last run.",
            "If the cause is gone, start a new run, whose first move clears the pin.",
            "Or open by name, if you have your own proof: `sluicegate gate open --as YOU --reason WHY`.",
            "If it is to stay closed, leave it, and silence this alert for as long as you mean to.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    pinned = key(GATE_PINNED, **{REASON_LABEL: PinReason.ROLLED_BACK.value})
    other = key(GATE_PINNED, **{REASON_LABEL: PinReason.OPERATOR.value})
    reason = {REASON_LABEL: PinReason.ROLLED_BACK.value}
    drained = {**gate(DrainState.DRAIN), pinned: Signal(1), other: Signal(0)}
    return (
        Case("in drain", drained, fires=True, labels=reason),
        Case("in reject_new", {**drained, **gate(DrainState.REJECT_NEW)}, fires=True, labels=reason),
        Case("open: the pin stops loosening only", {**drained, **gate(DrainState.ADMIT)}, fires=False),
        Case("in drain, not pinned", {**drained, pinned: Signal(0)}, fires=False),
        Case("no such series", {**drained, pinned: None, other: None}, fires=False),
    )
