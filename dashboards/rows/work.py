"""How much work is there: last, for it tells nothing about deadlines by itself."""

from __future__ import annotations

from dashboards.model import Colour, Kind, Panel, Query, Row, Step, Unit
from dashboards.queries import plot, series
from sluicegate import records, telemetry
from sluicegate.records import AlertName
from sluicegate.settings import Contract


def build(contract: Contract) -> Row:
    """Build the row."""
    return Row(
        500,
        "How much work is there?",
        (
            Panel(
                id=501,
                title="Jobs by state",
                says="Jobs before their end; pending, delayed, running, unknown and blocked are never added up.",
                kind=Kind.LINES,
                unit=Unit.COUNT,
                queries=(plot(records.JOBS, f"{{{{{telemetry.STATE_LABEL}}}}}"),),
                no_value="no telemetry",
                alerts=(
                    AlertName.QUEUE_AGE_HIGH,
                    AlertName.QUEUE_AGE_CRITICAL,
                    AlertName.UNKNOWN_RISING,
                    AlertName.JOBS_BLOCKED,
                    AlertName.LEASE_LEAK,
                    AlertName.CONTRACT_EXCEEDED,
                    AlertName.TELEMETRY_BLIND,
                ),
                width=10,
            ),
            Panel(
                id=502,
                title="In flight",
                says="Jobs under a lease. At the limit (the line) workers are busy; that alone means nothing is wrong.",
                kind=Kind.LINES,
                unit=Unit.COUNT,
                queries=(plot(records.INFLIGHT, "in flight"),),
                no_value="no telemetry",
                steps=(Step(None, Colour.GREY), Step(contract.max_running, Colour.GREY)),
                width=8,
            ),
            Panel(
                id=503,
                title="Duplicates to acknowledge",
                says="Side effects that happened twice and that no named person has acknowledged; one rolls back.",
                kind=Kind.STAT,
                unit=Unit.COUNT,
                queries=(plot(records.DUPLICATES, "duplicates"),),
                no_value="no telemetry",
                alerts=(AlertName.DUPLICATE_SIDE_EFFECT,),
                steps=(Step(None, Colour.GOOD), Step(1, Colour.BAD)),
                width=6,
            ),
            Panel(
                id=504,
                title="Jobs by class",
                says="Which class waits, runs, or is unknown or blocked.",
                kind=Kind.LINES,
                unit=Unit.COUNT,
                queries=(plot(records.CLASS_JOBS, f"{{{{{telemetry.CLASS_LABEL}}}}} {{{{{telemetry.STATE_LABEL}}}}}"),),
                no_value="no telemetry",
                width=10,
            ),
            Panel(
                id=505,
                title="Oldest unknown job",
                says="How long nobody has been able to say what became of it.",
                kind=Kind.LINES,
                unit=Unit.SECONDS,
                queries=(
                    Query(
                        f"{series(records.SNAPSHOT)} - on ({telemetry.QUEUE_LABEL}) {series(records.OLDEST_UNKNOWN)}",
                        "oldest",
                    ),
                ),
                no_value="no job is unknown, or no telemetry",
                alerts=(AlertName.UNKNOWN_NOT_RECONCILED,),
                width=8,
            ),
            Panel(
                id=506,
                title="Unknown jobs that went on",
                says="How many left unknown, and how many of them by a reconcile record: the two are the same.",
                kind=Kind.LINES,
                unit=Unit.COUNT,
                queries=(plot(records.UNKNOWN_LEFT, "left"), plot(records.UNKNOWN_RECONCILED, "reconciled")),
                no_value="no telemetry",
                alerts=(AlertName.UNKNOWN_REPLAYED,),
                width=6,
            ),
        ),
    )
