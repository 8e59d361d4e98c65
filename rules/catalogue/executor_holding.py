"""A run stands in one step for longer than the step takes: it waits for a person."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from rules.situations import key
from sluicegate import records
from sluicegate.gate import Runbook
from sluicegate.records import AlertName
from sluicegate.settings import Contract
from sluicegate.telemetry import RUN_LIVE, RUNBOOK_LABEL, STEP_LABEL

NAME = AlertName.EXECUTOR_HOLDING


def longest_step_s(contract: Contract) -> float:
    """Give the longest that a step takes which waits for nobody, or the time after which a waiting one pages again."""
    timings = contract.timings
    ramp_s = timings.gate_timeout_s + len(contract.ramp_percents) * timings.ramp_step_s
    steps = (
        timings.freeze_timeout_s,
        timings.drain_timeout_s,
        timings.canary_timeout_s,
        timings.burn_down_max_s,
        ramp_s,
    )
    return max(timings.fix_page_s, max(steps) + timings.limit_grace_s)


def build(scope: Scope) -> Alert:
    """Build the alert for a run that stays in the same step; the step is a label, so every step starts anew."""
    for_s = longest_step_s(scope.settings.contract)
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="executor",
        when="a run stands in the same step",
        expression=f"{scope.series(records.RUN_LIVE)} == 1",
        for_s=for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"The recovery of queue {scope.queue} does not go on: it waits for a person.",
        description=(
            f"The run {{{{ $labels.{RUNBOOK_LABEL} }}}} has been in step {{{{ $labels.{STEP_LABEL} }}}} for"
            f" {duration(for_s)}. The gate is closed and callers are refused until somebody gives it what it waits for."
        ),
        by_itself="The executor looks ten times a second, says in its log what it waits for, and rolls back at last.",
        by_a_person=(
            "Read what it waits for: `sluicegate automation show RUN`.",
            "In fix: remove the fault, then `sluicegate automation approve RUN fix --as YOU --reason WHY`.",
            "In another step: the log of the automation service says why it holds.",
            "To give it up: `sluicegate automation abort RUN --as YOU --reason WHY`.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.runs_dashboard_url,
        waits_by_design="a step is given its time first",
        waivers=(("page-latency", "a step is given its time first"),),
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    labels = {RUNBOOK_LABEL: Runbook.DRAIN_AND_RECOVER.value, STEP_LABEL: "fix"}
    run = key(RUN_LIVE, **labels)
    return (
        Case("the same step for long", {run: Signal(1)}, fires=True, labels=labels),
        Case("no run is live", {run: None}, fires=False),
    )
