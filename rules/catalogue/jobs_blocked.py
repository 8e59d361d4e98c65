"""Jobs wait for a named person, and nobody has come."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from rules.situations import jobs
from sluicegate import records
from sluicegate.job import JobState
from sluicegate.records import AlertName
from sluicegate.telemetry import STATE_LABEL

NAME = AlertName.JOBS_BLOCKED
_FOR_S = 900.0


def build(scope: Scope) -> Alert:
    """Build the alert for blocked jobs that have been there for a quarter of an hour."""
    blocked = jobs(JobState.BLOCKED)
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="blocked",
        when="a job is blocked",
        expression=f"{scope.series(records.JOBS, **{STATE_LABEL: JobState.BLOCKED})} > 0",
        for_s=_FOR_S,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"Jobs on queue {scope.queue} are blocked: only a named person moves them.",
        description=(
            f"For {duration(_FOR_S)} at least one job has been out of retries, lost with its workers too often, or set"
            " aside by a decision. Its deadline does not wait."
        ),
        by_itself="Nothing: a blocked job leaves only by a named person.",
        by_a_person=(
            "List them: `sluicegate queue blocked`.",
            "Read why one is: `sluicegate queue show JOB`.",
            "Repeat it: `sluicegate queue retry JOB --as YOU --reason WHY`.",
            "Or give it up: `sluicegate queue fail JOB --as YOU --reason WHY`.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=(
            Case("one", {blocked: Signal(1)}, fires=True, labels={STATE_LABEL: JobState.BLOCKED.value}),
            Case("none", {blocked: Signal(0)}, fires=False),
            Case("no such series", {blocked: None}, fires=False),
        ),
    )
