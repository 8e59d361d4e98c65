"""The gate was reopened, the figures are in breach, and it still admits."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration, number
from rules.scope import Scope, guarded
from rules.situations import gate, silent_when_frozen, under
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.records import AlertName
from sluicegate.telemetry import DEADLINE_SLACK_P10_SECONDS, QUEUE_AGE_P95_SECONDS, QUEUE_LABEL

NAME = AlertName.REOPENED_UNSAFE


def build(scope: Scope) -> Alert:
    """Build the alert for a breach of row 5 in the ramp that was not rolled back within a few ticks (contract §6)."""
    bounds, contract = scope.thresholds, scope.settings.contract
    age, slack = bounds.reject_age_p95_seconds, bounds.reject_slack_p10_seconds
    recovering = scope.drain_state(DrainState.RECOVERING)
    ramp_s = len(contract.ramp_percents) * contract.timings.ramp_step_s
    # What is in breach at the end of the ramp is still told when `for` has passed, however long that is.
    looks_back_s = ramp_s + scope.timing.for_s
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="reopening",
        when=f"reopened within {duration(ramp_s)}, slack p10 < {number(slack)} s or age p95 ≥ {number(age)} s",
        expression=guarded(
            f"({scope.series(records.SLACK)} < {number(slack)} or {scope.series(records.QUEUE_AGE)} >= {number(age)})",
            f"and on ({QUEUE_LABEL}) {scope.drain_state(DrainState.ADMIT)} == 1",
            f"and on ({QUEUE_LABEL}) max_over_time({recovering}[{duration(looks_back_s)}]) == 1",
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        looks_back_s=looks_back_s,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"Queue {scope.queue} was reopened and is not well: it must be closed again.",
        description=(
            "The gate opened after a recovery, age or slack are past their bounds, and it still admits. A breach in"
            " the ramp is to be rolled back at once; that has not happened."
        ),
        by_itself="The controller itself rolls a breach in the ramp back. It has had several ticks to do so.",
        by_a_person=(
            "Close it by name: `sluicegate gate drain --as YOU --reason WHY`.",
            "See whether the controller ticks, and what its log says of the move.",
            "Do not reopen before slack and age are back within their bounds.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(scope, age, slack),
    )


def _cases(scope: Scope, age_bound: float, slack_bound: float) -> tuple[Case, ...]:
    del scope
    age, slack = QUEUE_AGE_P95_SECONDS, DEADLINE_SLACK_P10_SECONDS
    recovered = gate(DrainState.RECOVERING)
    short = {slack: Signal(slack_bound - 1e-3)}
    old = {age: Signal(age_bound)}
    return (
        Case("slack just under its bound", short, fires=True, before=recovered),
        Case("age at its bound", old, fires=True, before=recovered),
        Case("both are one alert", {**short, **old}, fires=True, before=recovered),
        Case("slack at its bound", {slack: Signal(slack_bound)}, fires=False, before=recovered),
        Case("age just under its bound", {age: Signal(under(age_bound))}, fires=False, before=recovered),
        Case("closed again", {**short, **gate(DrainState.DRAIN)}, fires=False, before=recovered),
        Case("not after a recovery", short, fires=False, before=gate(DrainState.REJECT_NEW)),
        silent_when_frozen(short),
    )
