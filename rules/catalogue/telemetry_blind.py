"""Work is there and its slack is not shown: what matters most can't be seen."""

from __future__ import annotations

import math

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from rules.situations import jobs
from sluicegate import records
from sluicegate.job import JobState
from sluicegate.records import AlertName
from sluicegate.telemetry import DEADLINE_SLACK_P10_SECONDS, PENDING_STATE, QUEUE_LABEL, STATE_LABEL

NAME = AlertName.TELEMETRY_BLIND
_UNFINISHED = (PENDING_STATE, JobState.DELAYED, JobState.RUNNING)


def build(scope: Scope) -> Alert:
    """Build the alert for unfinished jobs without a slack: the two are read in one instant, so they go together."""
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="telemetry",
        when=f"jobs are unfinished and no slack is shown for {duration(scope.timing.absent_for_s)}",
        expression=(
            f"sum by ({QUEUE_LABEL}) ({scope.one_of(records.JOBS, STATE_LABEL, _UNFINISHED)}) > 0"
            # What is no number is unequal to itself.
            f"\nunless on ({QUEUE_LABEL}) {scope.series(records.SLACK)} == {scope.series(records.SLACK)}"
        ),
        for_s=scope.timing.absent_for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.HOLD,
        summary=f"Queue {scope.queue} has work and shows no slack: its alerts can't see deadlines.",
        description=(
            "Jobs are pending, delayed or running, but the slack to their deadlines is missing. The alerts on slack"
            " stay silent whatever happens."
        ),
        by_itself="The controller reads Redis itself. Verdicts that need slack take it for no work at risk.",
        by_a_person=(
            "Compare with `sluicegate exporter once`: is the figure missing there too?",
            "If it is not, a relabelling or a limit in Prometheus drops it.",
            "Watch the queue age until slack is back.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    slack = DEADLINE_SLACK_P10_SECONDS
    pending, delayed, running = (jobs(state) for state in _UNFINISHED)
    none = {pending: Signal(0), delayed: Signal(0), running: Signal(0), slack: None}
    return (
        Case("pending jobs", {**none, pending: Signal(1)}, fires=True),
        Case("a slack that is no number", {**none, pending: Signal(1), slack: Signal(math.nan)}, fires=True),
        Case("delayed jobs", {**none, delayed: Signal(1)}, fires=True),
        Case("running jobs", {**none, running: Signal(1)}, fires=True),
        Case("an idle queue", none, fires=False),
        Case(
            "unknown and blocked jobs have no slack",
            {**none, jobs("unknown"): Signal(3), jobs("blocked"): Signal(3)},
            False,
        ),
        Case("a slack past the deadline is one", {**none, pending: Signal(1), slack: Signal(-9)}, fires=False),
        Case("nothing at all: that is another alert", dict.fromkeys(none), fires=False),
    )
