"""More work is accepted than the contract allows."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.scope import Scope, guarded
from rules.situations import jobs, silent_when_frozen
from sluicegate import records
from sluicegate.job import JobState
from sluicegate.records import AlertName
from sluicegate.telemetry import PENDING_STATE, QUEUE_LABEL, STATE_LABEL

NAME = AlertName.CONTRACT_EXCEEDED
_ACCEPTED = (PENDING_STATE, JobState.DELAYED, JobState.RUNNING)


def build(scope: Scope) -> Alert:
    """Build the alert for pending, delayed and running jobs together above max_in_flight, for a whole lease."""
    contract = scope.settings.contract
    most = contract.effective_max_pending + contract.max_running
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="contract",
        when=f"over {most} jobs are pending, delayed or running",
        expression=guarded(
            f"sum by ({QUEUE_LABEL}) ({scope.one_of(records.JOBS, STATE_LABEL, _ACCEPTED)}) > {most}",
            scope.unless_frozen,
        ),
        for_s=contract.lease_ms / 1000,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"Queue {scope.queue} holds more work than its contract allows.",
        description=(
            f"The contract allows {most} jobs at once. Reconciled jobs that came back may exceed it for a moment; this"
            " lasts."
        ),
        by_itself="Admission refuses every new job as overloaded until there is room.",
        by_a_person=(
            "See whether the contract in force is the one of your file: `sluicegate queue settings`.",
            "See what came back: many unknown or blocked jobs that were retried at once?",
            "If neither, something writes to the queue's keys that is not Sluicegate.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(most),
    )


def _cases(most: int) -> tuple[Case, ...]:
    pending, delayed, running = (jobs(state) for state in _ACCEPTED)
    risk = {pending: Signal(most - 2), delayed: Signal(1), running: Signal(2)}
    return (
        Case("one too many", risk, fires=True),
        Case("as many as allowed", {**risk, delayed: Signal(0)}, fires=False),
        Case("unknown and blocked are none of them", {**risk, delayed: Signal(0), jobs("unknown"): Signal(9)}, False),
        Case("no such series", {pending: None, delayed: None, running: None}, fires=False),
        silent_when_frozen(risk),
    )
