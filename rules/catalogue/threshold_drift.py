"""The thresholds in force are not those that these rules were generated from."""

from __future__ import annotations

from dataclasses import asdict

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import number
from rules.scope import Scope, guarded
from rules.situations import key, over, under
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import NAME_LABEL, THRESHOLD

NAME = AlertName.THRESHOLD_DRIFT
_FOR_S = 300.0


def build(scope: Scope) -> Alert:
    """Build the alert for a stored threshold that differs from the generated one; the label says which."""
    bounds = {name: float(value) for name, value in asdict(scope.thresholds).items()}
    stored = {name: scope.series(records.THRESHOLD, **{NAME_LABEL: name}) for name in bounds}
    # What is no number is unequal to everything, itself too.
    differ = "\nor ".join(f"({stored[name]} == {stored[name]}) != {number(value)}" for name, value in bounds.items())
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="thresholds",
        when="a threshold in force differs from the one that these rules have",
        expression=guarded(differ),
        for_s=max(scope.timing.for_s, _FOR_S),
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"The controller of queue {scope.queue} and these alerts go by different thresholds.",
        description=(
            f"The stored {{{{ $labels.{NAME_LABEL} }}}} is not the one these rules were generated with. An alert may"
            " come too late, or where the controller sees nothing wrong."
        ),
        by_itself="Nothing: the controller goes by what is stored.",
        by_a_person=(
            "See which is meant: `sluicegate queue settings` shows both.",
            "Put the file into force with `sluicegate queue apply`, or generate the rules anew from the right file.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(bounds),
    )


def _cases(bounds: dict[str, float]) -> tuple[Case, ...]:
    def stored(name: str, value: float) -> dict[str, Signal | None]:
        return {key(THRESHOLD, **{NAME_LABEL: name}): Signal(value)}

    first, *others = bounds
    every = {series: signal for name, value in bounds.items() for series, signal in stored(name, value).items()}
    return (
        Case(
            "every one a little higher",
            {series: signal for name, value in bounds.items() for series, signal in stored(name, over(value)).items()},
            fires=True,
            labels={NAME_LABEL: first},
            also=tuple({NAME_LABEL: name} for name in others),
        ),
        Case(
            f"{first} alone a little lower",
            {**every, **stored(first, under(bounds[first]))},
            fires=True,
            labels={NAME_LABEL: first},
        ),
        Case("all as generated", every, fires=False),
        Case("none stored", dict.fromkeys(every), fires=False),
        Case("one of a later version", {**every, **stored("later", under(1))}, fires=False),
    )
