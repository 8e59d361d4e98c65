"""Nobody watches the queue: admission refuses by itself, and a person must look after the controller."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal, clock
from rules.promql import number
from rules.scope import Scope, guarded
from rules.situations import over, silent_when_frozen, under
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import CONTROLLER_SEEN_TIMESTAMP_SECONDS, QUEUE_LABEL, SNAPSHOT_TIMESTAMP_SECONDS

NAME = AlertName.CONTROLLER_SILENT


def build(scope: Scope) -> Alert:
    """Build the alert for a controller that has not ticked for longer than `controller_silent_s`."""
    bound = scope.settings.contract.timings.controller_silent_s
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="controller",
        when=f"the controller was last seen over {number(bound)} s ago",
        expression=guarded(
            # Both times are of Redis and of one reading, so no clock of Prometheus has to agree with them.
            f"{scope.series(records.SNAPSHOT)} - on ({QUEUE_LABEL}) {scope.series(records.CONTROLLER_SEEN)}"
            f" > {number(bound)}",
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"The controller of queue {scope.queue} is silent: admission refuses every job.",
        description=(
            f"No controller has ticked for more than {number(bound)} seconds. Workers go on with what was accepted, but"
            " nobody would close the gate if the provider failed now."
        ),
        by_itself=(
            "Admission answers controller_silent until a controller ticks again, and that looks before anything opens."
            " No run can start or go on, for the executor lives in the same process."
        ),
        by_a_person=(
            "See whether the automation service runs, and read its log.",
            "If it runs, see whether it reaches Redis.",
            "Start it again; two at once do no harm, one of them acts.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(bound),
    )


def _cases(bound: float) -> tuple[Case, ...]:
    seen = CONTROLLER_SEEN_TIMESTAMP_SECONDS

    def reading(lag_s: float) -> dict[str, Signal | None]:
        return {SNAPSHOT_TIMESTAMP_SECONDS: clock(lag_s)}

    return (
        Case("just over the bound", {seen: clock(over(bound))}, fires=True),
        Case("it stopped long ago", {seen: Signal(-2 * bound)}, fires=True),
        Case("at the bound", {seen: clock(bound)}, fires=False),
        Case("just under it", {seen: clock(under(bound))}, fires=False),
        Case("no such series", {seen: None}, fires=False),
        # An hour between the clocks of Redis and Prometheus neither pages nor hides anything.
        Case("seen just now, by a clock that is behind", {**reading(3600), seen: clock(3600 + under(bound))}, False),
        Case("not seen, by a clock that is ahead", {**reading(-3600), seen: clock(-3600 + over(bound))}, fires=True),
        silent_when_frozen({seen: Signal(-2 * bound)}),
    )
