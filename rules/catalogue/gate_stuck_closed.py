"""The gate is closed, nothing is wrong any more, and nobody works on opening it."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration, number
from rules.scope import Scope, guarded
from rules.situations import gate, key
from sluicegate import records
from sluicegate.gate import DrainState, PinReason
from sluicegate.records import AlertName
from sluicegate.telemetry import (
    DEADLINE_SLACK_P10_SECONDS,
    DRAIN_STATE,
    GATE_PINNED,
    QUEUE_AGE_P95_SECONDS,
    QUEUE_LABEL,
    REASON_LABEL,
    RUN_LIVE,
    RUNBOOK_LABEL,
    STEP_LABEL,
)

NAME = AlertName.GATE_STUCK_CLOSED


def build(scope: Scope) -> Alert:
    """Build the alert for a drain without a run, or a reject_new on good figures, for longer than either may last.

    A pinned gate has an alert of its own.
    """
    bounds, timings = scope.thresholds, scope.settings.contract.timings
    age, slack = bounds.recovered_age_p95_seconds, bounds.recovered_slack_p10_seconds
    for_s = timings.reject_dwell_max_s + timings.run_open_after_s
    drained = scope.one_of(records.DRAIN_STATE, DRAIN_STATE, (DrainState.DRAIN, DrainState.RECOVERING))
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="gate",
        when="the gate is closed, not pinned and without a run, though nothing asks for it",
        expression=guarded(
            "(",
            f"  {drained} == 1",
            "  or",
            f"  {scope.drain_state(DrainState.REJECT_NEW)} == 1",
            f"  unless on ({QUEUE_LABEL}) {scope.series(records.QUEUE_AGE)} >= {number(age)}",
            f"  unless on ({QUEUE_LABEL}) {scope.series(records.SLACK)} <= {number(slack)}",
            ")",
            f"unless on ({QUEUE_LABEL}) {scope.series(records.RUN_LIVE)} == 1",
            f"unless on ({QUEUE_LABEL}) {scope.series(records.GATE_PINNED)} == 1",
        ),
        for_s=for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"Queue {scope.queue} refuses jobs for no reason that is left.",
        description=(
            f"For {duration(for_s)} the gate has been in {{{{ $labels.{DRAIN_STATE} }}}} with neither a run nor a pin:"
            " nothing is on its way to open it. Callers are refused meanwhile."
        ),
        by_itself=(
            "In reject_new the controller admits again once the figures were good for its dwell; in a drain that is"
            " not pinned it opens the run. Neither has happened."
        ),
        by_a_person=(
            "See what the controller thinks: `sluicegate gate show`.",
            "Start the recovery: `sluicegate automation run drain-and-recover --as YOU --reason WHY`.",
            "Or open by name, with your own proof: `sluicegate gate open --as YOU --reason WHY`.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(scope, age, slack),
    )


def _cases(scope: Scope, age_bound: float, slack_bound: float) -> tuple[Case, ...]:
    del scope
    age, slack = QUEUE_AGE_P95_SECONDS, DEADLINE_SLACK_P10_SECONDS
    run = key(RUN_LIVE, **{RUNBOOK_LABEL: "drain-and-recover", STEP_LABEL: "fix"})
    pinned = key(GATE_PINNED, **{REASON_LABEL: PinReason.OPERATOR.value})
    rejects, drains = gate(DrainState.REJECT_NEW), gate(DrainState.DRAIN)
    step = 1e-3

    def of(state: DrainState) -> dict[str, str]:
        return {DRAIN_STATE: state.value}

    barely = {**rejects, age: Signal(age_bound - step), slack: Signal(slack_bound + step)}
    return (
        Case("reject_new on figures that are good, barely", barely, True, of(DrainState.REJECT_NEW)),
        Case("reject_new on an empty queue", {**rejects, age: Signal(0), slack: None}, True, of(DrainState.REJECT_NEW)),
        Case("a drain without a run", {**drains, age: Signal(99)}, fires=True, labels=of(DrainState.DRAIN)),
        Case("recovering without a run", gate(DrainState.RECOVERING), fires=True, labels=of(DrainState.RECOVERING)),
        Case("reject_new on an age at the bound", {**barely, age: Signal(age_bound)}, fires=False),
        Case("reject_new on a slack at the bound", {**barely, slack: Signal(slack_bound)}, fires=False),
        Case("a drain with its run", {**drains, run: Signal(1)}, fires=False),
        Case("a drain with its pin", {**drains, pinned: Signal(1)}, fires=False),
        Case("open", gate(DrainState.ADMIT), fires=False),
    )
