"""More jobs become unknown at once than one dead worker explains."""

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

NAME = AlertName.UNKNOWN_RISING
_LEASES = 10
# With a shorter lease still so many samples: the least of one or two would be the last one.
_SAMPLES = 10


def build(scope: Scope) -> Alert:
    """Build the alert for more new unknown jobs within ten leases, or ten samples, than one worker can hold."""
    most = scope.settings.worker.max_inflight
    every_s = max(scope.timing.scrape_s, scope.timing.evaluation_s)
    window_s = max(_LEASES * scope.settings.contract.lease_ms / 1000, _SAMPLES * every_s)
    unknown = scope.series(records.JOBS, **{STATE_LABEL: JobState.UNKNOWN})
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="unknown_count",
        when=f"over {most} more jobs are unknown than at the least of the last {duration(window_s)}",
        expression=f"{unknown} - min_over_time({unknown}[{duration(window_s)}]) > {most}",
        for_s=0,
        keep_firing_for_s=scope.timing.keep_s,
        looks_back_s=window_s,
        severity=Severity.TICKET,
        action=SluicegateAction.RECONCILE,
        summary=f"More jobs on queue {scope.queue} become unknown than one dead worker explains.",
        description=(
            f"One worker holds at most {most} jobs. More than that lost their worker, or their call broke off in the"
            " middle, within a short time."
        ),
        by_itself="Ledger and provider are asked what became of each; what they know is settled, the rest waits.",
        by_a_person=(
            "See whether workers were killed: a deploy, a host that went away, memory.",
            "If calls break off instead, look at the network between workers and provider.",
            "Do not restart workers to help: every kill in the middle of a call makes one more.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(most),
    )


def _cases(most: int) -> tuple[Case, ...]:
    unknown = jobs(JobState.UNKNOWN)
    return (
        Case("one more than a worker holds", {unknown: Signal(most + 1)}, True, {STATE_LABEL: JobState.UNKNOWN.value}),
        Case("as many as a worker holds", {unknown: Signal(most)}, fires=False, before={unknown: Signal(0)}),
        Case("many, but for long", {unknown: Signal(most + 7)}, fires=False, before={unknown: Signal(most + 7)}),
        Case("no such series", {unknown: None}, fires=False),
    )
