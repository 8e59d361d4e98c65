"""The gate keeps returning to reject_new: it opens onto a queue that can't take it."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import REJECT_RETURNS_TOTAL

NAME = AlertName.GATE_FLAPPING
_RETURNS = 4
_WINDOW_IN_RETURN_TIMES = 10


def build(scope: Scope) -> Alert:
    """Build the alert for four returns to reject_new within ten minutes (contract §6)."""
    window_s = _WINDOW_IN_RETURN_TIMES * scope.settings.contract.timings.reject_return_s
    returns = scope.series(records.REJECT_RETURNS)
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="gate_returns",
        when=f"reject_new returned {_RETURNS} times within {duration(window_s)}",
        expression=f"{returns} - min_over_time({returns}[{duration(window_s)}]) >= {_RETURNS}",
        for_s=0,
        keep_firing_for_s=scope.timing.keep_s,
        looks_back_s=window_s,
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"The gate of queue {scope.queue} keeps opening and closing.",
        description=(
            f"It returned to reject_new {_RETURNS} times within {duration(window_s)}. Every opening lets in more than"
            " the workers can take, and the next closing refuses callers anew."
        ),
        by_itself="Each return doubles the time for which figures must be good before it opens again.",
        by_a_person=(
            "Compare the arriving load with the completions: the workers are too few, or the provider too slow.",
            "Ask the largest sender to spread its load.",
            "If a threshold is too tight for this queue, change one: `sluicegate queue apply`.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    returns = REJECT_RETURNS_TOTAL
    return (
        Case("four of them", {returns: Signal(_RETURNS)}, fires=True),
        Case("three of them", {returns: Signal(_RETURNS - 1)}, fires=False, before={returns: Signal(0)}),
        Case("many, but long ago", {returns: Signal(99)}, fires=False, before={returns: Signal(99)}),
        Case("no such series", {returns: None}, fires=False),
    )
