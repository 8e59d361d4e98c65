"""A declared queue shows no figures: every other alert is blind."""

from __future__ import annotations

import math

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from rules.situations import jobs
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import DEADLINE_SLACK_P10_SECONDS, PENDING_STATE, QUEUE_AGE_P95_SECONDS, REDIS_UP

NAME = AlertName.TELEMETRY_ABSENT


def build(scope: Scope) -> Alert:
    """Build the alert for a declared queue without a queue age: it is 0, never absent, while it can be read."""
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="telemetry",
        when=f"no queue age for {duration(scope.timing.absent_for_s)}",
        # What is no number is unequal to itself: it is as absent as what is not there.
        expression=f"absent({scope.series(records.QUEUE_AGE)} == {scope.series(records.QUEUE_AGE)})",
        for_s=scope.timing.absent_for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.HOLD,
        summary=f"Queue {scope.queue} shows no figures: its alerts are blind.",
        description=(
            "The exporter, or the Redis behind it, gives no figures for this queue. An alert that ends now has not"
            " ended because things are well."
        ),
        by_itself=(
            "Verdicts that need figures are inconclusive, so nothing reopens on them. The controller reads Redis"
            " itself: if it can, it goes on deciding; if it cannot, admission refuses."
        ),
        by_a_person=(
            "See whether the exporter is up and whether it reaches Redis (`sluicegate_redis_up`).",
            "See whether Prometheus scrapes it: its targets page.",
            "Treat the queue as not well until figures are back.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    age = QUEUE_AGE_P95_SECONDS
    return (
        Case("no queue age", {age: None, REDIS_UP: Signal(0)}, fires=True),
        Case("a queue age that is no number", {age: Signal(math.nan)}, fires=True),
        Case(
            "an idle queue", {age: Signal(0), DEADLINE_SLACK_P10_SECONDS: None, jobs(PENDING_STATE): Signal(0)}, False
        ),
    )
