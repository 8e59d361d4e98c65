"""A run is live and no executor is heard of: the gate stays closed until one comes."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal, clock
from rules.promql import number
from rules.scope import Scope
from rules.situations import key, over, under
from sluicegate import records
from sluicegate.gate import Runbook
from sluicegate.records import AlertName
from sluicegate.telemetry import EXECUTOR_SEEN_TIMESTAMP_SECONDS, QUEUE_LABEL, RUN_LIVE, RUNBOOK_LABEL, STEP_LABEL

NAME = AlertName.EXECUTOR_DEAD


def build(scope: Scope) -> Alert:
    """Build the alert for a live run whose executor was not seen for a lease, or is not scraped at all."""
    bound = scope.settings.contract.timings.run_lease_s
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="executor",
        when=f"a run is live and no executor was seen for {number(bound)} s",
        expression=(
            f"{scope.series(records.RUN_LIVE)} == 1"
            f"\nunless on ({QUEUE_LABEL}) time() - {scope.series(records.EXECUTOR_SEEN)} <= {number(bound)}"
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"A recovery of queue {scope.queue} is under way and nobody carries it out.",
        description=(
            f"The run {{{{ $labels.{RUNBOOK_LABEL} }}}} stands in step {{{{ $labels.{STEP_LABEL} }}}}; no executor has"
            f" asked for it for more than {number(bound)} seconds. The gate stays closed meanwhile."
        ),
        by_itself=(
            "Any executor that starts goes on where the last one stopped, under a new fence. A step past its limit is"
            " rolled back by the controller."
        ),
        by_a_person=(
            "See whether the automation service runs, whether Prometheus scrapes it, and whether their clocks agree.",
            "Start it again; two at once do no harm, one of them owns the run.",
            "To give the run up: `sluicegate automation abort RUN --as YOU --reason WHY`.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.runs_dashboard_url,
        cases=_cases(bound, scope.timing.blur_s),
    )


def _cases(bound: float, blur: float) -> tuple[Case, ...]:
    seen = EXECUTOR_SEEN_TIMESTAMP_SECONDS
    labels = {RUNBOOK_LABEL: Runbook.DRAIN_AND_RECOVER.value, STEP_LABEL: "canary"}
    run = key(RUN_LIVE, **labels)
    return (
        Case("it was seen just over a lease ago", {run: Signal(1), seen: clock(over(bound))}, True, labels),
        Case("it stopped long ago", {run: Signal(1), seen: Signal(-2 * bound)}, fires=True, labels=labels),
        Case("it is not scraped", {run: Signal(1), seen: None}, fires=True, labels=labels),
        Case("it was seen a lease ago", {run: Signal(1), seen: clock(bound - blur)}, fires=False),
        Case("it was seen just now", {run: Signal(1), seen: clock(under(bound) - blur)}, fires=False),
        Case("no run is live", {run: None, seen: None}, fires=False),
    )
