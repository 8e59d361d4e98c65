"""Accepted jobs are about to miss their deadlines: refuse new ones so that these may still make it."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import number
from rules.scope import Scope, guarded
from rules.situations import fires_in_drain, green, silent_when_frozen
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import DEADLINE_SLACK_P10_SECONDS

NAME = AlertName.DEADLINE_SLACK_LOW


def build(scope: Scope) -> Alert:
    """Build the alert for slack p10 < `reject_slack_p10_seconds` (row 5 of the decision table)."""
    bound = scope.thresholds.reject_slack_p10_seconds
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="deadline_slack",
        when=f"slack p10 < {number(bound)} s",
        expression=guarded(
            f"{scope.series(records.SLACK)} < {number(bound)}", scope.unless_recovering, scope.unless_frozen
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.REJECT_NEW,
        summary=f"Accepted jobs on queue {scope.queue} are about to miss their deadlines: new ones are refused.",
        description=(
            f"One unfinished job in ten has less than {number(bound)} seconds left until its deadline. Without action"
            " these become missed deadlines that a customer sees."
        ),
        by_itself=(
            "The controller moves the gate to reject_new. Jobs that can no longer be done in time end as expired, each"
            " with its record; nothing is deleted in silence."
        ),
        by_a_person=(
            "See which class is short of time: the panel of slack by class.",
            "If one class alone is short, its deadline or its share of the workers may be wrong.",
            "If all are, look at the provider's latency.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(scope, bound),
    )


def _cases(scope: Scope, bound: float) -> tuple[Case, ...]:
    slack = DEADLINE_SLACK_P10_SECONDS
    nudge = max(abs(bound), 1) / 1000
    risk = {slack: Signal(bound - nudge)}
    return (
        Case("just under the bound", risk, fires=True),
        Case("past the deadline", {slack: Signal(-nudge - abs(bound))}, fires=True),
        Case("at the bound", {slack: Signal(bound)}, fires=False),
        Case("just over it", {slack: Signal(bound + nudge)}, fires=False),
        Case("no unfinished job, so no sample", {slack: None}, fires=False),
        Case("the kept backlog of a recovery", {**risk, **green(scope)}, fires=False),
        fires_in_drain(risk),
        silent_when_frozen(risk),
    )
