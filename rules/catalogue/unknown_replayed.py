"""A job left unknown without a reconcile record: what it did may be done twice."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import QUEUE_LABEL, UNKNOWN_LEFT_TOTAL, UNKNOWN_RECONCILED_TOTAL

NAME = AlertName.UNKNOWN_REPLAYED
_WINDOW_S = 900.0


def build(scope: Scope) -> Alert:
    """Build the alert for more jobs that left unknown than records that let them, over a quarter of an hour.

    Both are counted in Redis and read in one instant. Differences from the least of the window see the first one too.
    """
    left, proven = (_grown(scope.series(one)) for one in (records.UNKNOWN_LEFT, records.UNKNOWN_RECONCILED))
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="unknown_replayed",
        when=f"more jobs left unknown than were reconciled, within {duration(_WINDOW_S)}",
        expression=f"({left}) - on ({QUEUE_LABEL}) ({proven}) > 0",
        for_s=0,
        keep_firing_for_s=scope.timing.keep_s,
        looks_back_s=_WINDOW_S,
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"An unknown job on queue {scope.queue} went on without proof: its effect may happen twice.",
        description=(
            "A job leaves unknown only through a reconcile record. One left without: a fault of Sluicegate, or of"
            " whoever wrote to its keys by hand."
        ),
        by_itself="Nothing: it should be impossible, so nobody is trusted to put it right but a person.",
        by_a_person=(
            "Close the gate first: `sluicegate gate drain --as YOU --reason WHY`.",
            "Read the reconcile log beside the job's record: `sluicegate queue show JOB`.",
            "Ask the provider about the keys of the jobs that were unknown; undo what was done twice.",
            "Report it with the log: this is a bug.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _grown(series: str) -> str:
    return f"{series} - min_over_time({series}[{duration(_WINDOW_S)}])"


def _cases() -> tuple[Case, ...]:
    left, proven = UNKNOWN_LEFT_TOTAL, UNKNOWN_RECONCILED_TOTAL
    return (
        Case("one without a record", {left: Signal(1), proven: Signal(0)}, fires=True),
        Case("several, one of them without", {left: Signal(4), proven: Signal(3)}, fires=True),
        Case(
            "each with its record",
            {left: Signal(4), proven: Signal(4)},
            False,
            {},
            {left: Signal(0), proven: Signal(0)},
        ),
        Case(
            "long ago",
            {left: Signal(3), proven: Signal(2)},
            fires=False,
            before={left: Signal(3), proven: Signal(2)},
        ),
        Case("no such series", {left: None, proven: None}, fires=False),
    )
