"""Accepted jobs of a class are on their way past their deadlines, though none has missed one yet."""

from __future__ import annotations

from dataclasses import replace

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal, Situation
from rules.promql import duration, number
from rules.scope import Scope, guarded
from rules.situations import gate, green, key, silent_when_frozen
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.records import AlertName
from sluicegate.telemetry import (
    CLASS_JOBS,
    CLASS_LABEL,
    CLASS_SLACK_P10_SECONDS,
    PENDING_STATE,
    QUEUE_LABEL,
    STATE_LABEL,
)

NAME = AlertName.DEADLINE_BREACH_FORECAST
# A slack that drifts by less than this a second is steady: the slope of a window of noise.
STEADY_PER_S = 0.1


def build(scope: Scope) -> Alert:
    """Build the alert for a class whose slack p10, going on as it does, is under the floor half a deadline from now.

    The window of the slope is half the deadline too: a longer one tells of the breach only after it.
    """
    floor = scope.thresholds.reject_slack_p10_seconds
    classes = scope.settings.contract.classes
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="deadline_forecast",
        when=f"a class's slack p10, going on as it does, is under {number(floor)} s within half its deadline",
        expression=guarded(
            "(\n"
            + "\n  or\n".join(_of(scope, name, one.deadline_s / 2, floor) for name, one in classes.items())
            + "\n)",
            f"and on ({QUEUE_LABEL}, {CLASS_LABEL})"
            f" {scope.series(records.CLASS_JOBS, **{STATE_LABEL: PENDING_STATE})} > 0",
            scope.unless_in_a_run,
            scope.unless_frozen,
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        looks_back_s=max(one.deadline_s for one in classes.values()) / 2,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"Jobs of class {{{{ $labels.{CLASS_LABEL} }}}} on queue {scope.queue} will miss their deadlines soon.",
        description=(
            "Their slack falls, and going on like this it is used up within half a deadline. Nothing has been missed"
            " yet: what is done now still counts."
        ),
        by_itself=(
            "Nothing on the forecast alone. When age or slack reach their bounds the controller refuses new jobs or"
            " drains, as always."
        ),
        by_a_person=(
            "Look at the provider's latency: a stall shows there first.",
            "See whether the workers pull: `sluicegate gate show` lists when each was seen.",
            "If you know that the provider is down, drain now: `sluicegate gate drain --as YOU --reason WHY`.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(scope, floor),
    )


def _of(scope: Scope, name: str, half_s: float, floor: float) -> str:
    """Write the forecast of one class.

    The median keeps a dip of two samples from looking like a trend, and a slack that was not there a window ago has
    none: the slope of a few samples is noise.
    """
    slack = scope.series(records.CLASS_SLACK, **{CLASS_LABEL: name})
    window = duration(half_s)
    return (
        f"  {slack} + {number(half_s)} * (deriv({slack}[{window}]) < -{number(STEADY_PER_S)}) < {number(floor)}\n"
        f"  and {slack} < quantile_over_time(0.5, {slack}[{window}])\n"
        f"  and {slack} offset {window}"
    )


def _cases(scope: Scope, floor: float) -> tuple[Case, ...]:
    classes = scope.settings.contract.classes
    # Of the shortest window, so that promtool takes no more steps than it must.
    name, declared = min(classes.items(), key=lambda one: one[1].deadline_s)
    half_s = declared.deadline_s / 2
    slack = key(CLASS_SLACK_P10_SECONDS, **{CLASS_LABEL: name})
    waiting = key(CLASS_JOBS, **{CLASS_LABEL: name, STATE_LABEL: PENDING_STATE})
    of_class = {CLASS_LABEL: name}
    # A stall: every waiting job loses a second of slack a second. The tests' time is `half_s` when it begins.
    stall = {slack: Signal(floor + half_s * 1.3, -1)}
    slow, steady = -STEADY_PER_S * 2, -STEADY_PER_S / 2

    def silent(name: str, situation: Situation) -> Case:
        return Case(name, situation, fires=False, before={slack: situation[slack]}, lead_s=half_s)

    slowly = Signal(floor - slow * half_s * 1.98, slow)
    # It falls on while `for` passes.
    enough_s = half_s * 2.9 + 2 * scope.timing.for_s
    cases = (
        # It falls all the time, and is forecast from the moment that a job waits: however many samples a window has.
        Case("a stall close to the floor", stall, True, of_class, before={**stall, waiting: Signal(0)}),
        Case("a slow fall", {slack: slowly}, fires=True, labels=of_class, before={slack: slowly}),
        silent("a fall that leaves enough", {slack: Signal(floor - slow * enough_s, slow)}),
        silent("a drift that is noise", {slack: Signal(floor - steady * half_s * 0.5, steady)}),
        silent("low, but steady", {slack: Signal(floor)}),
        silent("low, but rising", {slack: Signal(floor / 2, 0.2)}),
        Case("running jobs only", {**stall, waiting: Signal(0)}, fires=False),
        silent("no unfinished job", {slack: None}),
        Case("in drain", {**stall, **gate(DrainState.DRAIN)}, fires=False),
        Case("in a recovery", {**stall, **green(scope)}, fires=False),
        silent_when_frozen(stall),
    )
    healthy = {slack: Signal(declared.deadline_s * 0.75)}
    return tuple(replace(case, before={**healthy, **case.before}, lead_s=half_s) for case in cases)
