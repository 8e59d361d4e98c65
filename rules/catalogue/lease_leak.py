"""Jobs stay running though their leases have ended: nobody sweeps."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.scope import Scope, guarded
from rules.situations import jobs, silent_when_frozen
from sluicegate import records
from sluicegate.job import JobState
from sluicegate.records import AlertName
from sluicegate.telemetry import QUEUE_LABEL, STATE_LABEL, WORKER_INFLIGHT

NAME = AlertName.LEASE_LEAK


def build(scope: Scope) -> Alert:
    """Build the alert for more running jobs than live leases, for a whole lease: a sweep takes a quarter of a second.

    Jobs in flight are compared with jobs running, never with a limit: a busy worker is no reason to wake anybody.
    """
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="leases",
        when="more jobs are running than leases live",
        expression=guarded(
            f"{scope.series(records.JOBS, **{STATE_LABEL: JobState.RUNNING})}"
            f" > on ({QUEUE_LABEL}) {scope.series(records.INFLIGHT)}",
            scope.unless_frozen,
        ),
        for_s=scope.settings.contract.lease_ms / 1000,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"Leases on queue {scope.queue} end and nobody takes their jobs back.",
        description=(
            "Jobs count as running whose lease has ended. They take places that other jobs need, and nobody learns"
            " what became of them."
        ),
        by_itself="Every worker and the controller sweep four times a second; while none does, nothing happens.",
        by_a_person=(
            "See whether the controller and at least one worker run: `sluicegate gate show`.",
            "Read their logs for refused commands: an old function library, a missing right.",
            "`sluicegate queue doctor` says what is wrong with the server.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    running, live = jobs(JobState.RUNNING), WORKER_INFLIGHT
    risk = {running: Signal(3), live: Signal(2)}
    return (
        Case("one lease has ended", risk, fires=True),
        Case("each has its lease", {running: Signal(3), live: Signal(3)}, fires=False),
        Case("canaries have leases too", {running: Signal(3), live: Signal(5)}, fires=False),
        Case("no such series", {running: None, live: None}, fires=False),
        silent_when_frozen(risk),
    )
