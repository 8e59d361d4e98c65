"""How much work is there: last, for it tells nothing about deadlines by itself."""

from __future__ import annotations

from dashboards.model import Colour, Kind, Panel, Row, Step, Unit
from dashboards.queries import plot
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
                alerts=(AlertName.QUEUE_AGE_HIGH, AlertName.QUEUE_AGE_CRITICAL),
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
        ),
    )
