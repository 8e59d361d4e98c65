"""The canaries are green but the queue is not well yet: hold admission."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import number
from rules.scope import Scope, guarded
from rules.situations import gate, green, over, recovering, silent_when_frozen, under
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.records import AlertName
from sluicegate.telemetry import DEADLINE_SLACK_P10_SECONDS, QUEUE_AGE_P95_SECONDS, QUEUE_LABEL

NAME = AlertName.RECOVERY_HOLD


def build(scope: Scope) -> Alert:
    """Build the alert for slack or age outside the recovered bounds after green (row 4 of the decision table)."""
    slack = scope.thresholds.recovered_slack_p10_seconds
    age = scope.thresholds.recovered_age_p95_seconds
    required = scope.settings.contract.canaries_required
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="recovery",
        when=f"recovering, green, and slack p10 ≤ {number(slack)} s or age p95 ≥ {number(age)} s",
        expression=guarded(
            f"({scope.series(records.SLACK)} <= {number(slack)} or {scope.series(records.QUEUE_AGE)} >= {number(age)})",
            f"and on ({QUEUE_LABEL}) {scope.series(records.CANARY_OK_COUNT)} >= {required}",
            f"and on ({QUEUE_LABEL}) {scope.drain_state(DrainState.RECOVERING)} == 1",
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.HOLD,
        summary=f"Queue {scope.queue} passes its canaries but is not well yet: admission stays closed.",
        description=(
            f"The provider works again, but slack has not risen over {number(slack)} seconds or age has not fallen"
            f" under {number(age)} seconds. Reopening now would put new jobs behind old ones and miss both."
        ),
        by_itself=(
            "Workers burn the kept backlog down with admission closed. The run's gate reopens only when slack and age"
            " are both good; where they do not get there in time it rolls back to drain."
        ),
        by_a_person=(
            "Normally nothing: a hold right after the canaries is what a recovery looks like.",
            "If it lasts, compare the kept backlog with the workers' capacity in the run's plan.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.runs_dashboard_url,
        cases=_cases(scope, slack, age),
    )


def _cases(scope: Scope, slack_bound: float, age_bound: float) -> tuple[Case, ...]:
    slack, age = DEADLINE_SLACK_P10_SECONDS, QUEUE_AGE_P95_SECONDS
    proven = green(scope)
    short = {**proven, slack: Signal(slack_bound)}
    old = {**proven, age: Signal(age_bound)}
    return (
        Case("slack at its bound", short, fires=True),
        Case("slack just under it", {**proven, slack: Signal(under(slack_bound))}, fires=True),
        Case("slack just over it", {**proven, slack: Signal(over(slack_bound))}, fires=False),
        Case("age at its bound", old, fires=True),
        Case("age just over it", {**proven, age: Signal(over(age_bound))}, fires=True),
        Case("age just under it", {**proven, age: Signal(under(age_bound))}, fires=False),
        Case("both at their bounds are one alert", {**short, age: Signal(age_bound)}, fires=True),
        Case("no unfinished job", {**proven, slack: None, age: Signal(0)}, fires=False),
        Case("no unfinished job known, but an old one waits", {**old, slack: None}, fires=True),
        Case(
            "a canary short of green",
            {**short, **recovering(canaries_ok=scope.settings.contract.canaries_required - 1)},
            fires=False,
        ),
        Case("not recovering", {**short, **gate(DrainState.DRAIN)}, fires=False),
        silent_when_frozen(short),
    )
