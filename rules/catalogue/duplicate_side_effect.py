"""Something was done twice: close, and audit the idempotency keys."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.scope import Scope
from rules.situations import fires_in_drain, green
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED

NAME = AlertName.DUPLICATE_SIDE_EFFECT


def build(scope: Scope) -> Alert:
    """Build the alert for a confirmed duplicate that no named person has acknowledged (row 1 of the decision table)."""
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="duplicate",
        when="a confirmed duplicate side effect is not acknowledged",
        # A gauge of what is unacknowledged, so the very first one counts; no guard may hide it.
        expression=f"{scope.series(records.DUPLICATES)} > 0",
        for_s=0,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.ROLLBACK,
        summary=f"A job on queue {scope.queue} had its side effect twice: the gate is rolled back to closed.",
        description=(
            "The ledger or the provider shows two effects for one idempotency key. Until it is known why, every further"
            " call may do harm twice."
        ),
        by_itself=(
            "The controller moves the gate to drain and pins it, ends the live run, and this alert's webhook opens"
            " rollback-and-audit. Nothing reopens the gate by itself after that."
        ),
        by_a_person=(
            "Read the audit: which keys, which jobs, which worker, which attempt.",
            "Undo or compensate the second effects outside Sluicegate.",
            "When the cause is gone, open by name: `sluicegate gate open --as YOU --reason WHY`.",
            "Know that opening acknowledges every duplicate known by then; the command says how many.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(scope),
    )


def _cases(scope: Scope) -> tuple[Case, ...]:
    duplicates = DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED
    risk = {duplicates: Signal(1)}
    return (
        Case("the first one", risk, fires=True),
        Case("several", {duplicates: Signal(7)}, fires=True),
        Case("none", {duplicates: Signal(0)}, fires=False),
        Case("no such series", {duplicates: None}, fires=False),
        Case("during a recovery", {**risk, **green(scope)}, fires=True),
        fires_in_drain(risk),
    )
