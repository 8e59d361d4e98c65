"""Can I trust this: are the figures there, are they of now, and does anybody act on them?"""

from __future__ import annotations

from dashboards.model import Colour, Kind, Panel, Query, Row, Step, Unit
from dashboards.queries import plot, series, since
from sluicegate import records, telemetry
from sluicegate.records import AlertName
from sluicegate.settings import Contract

_DARK = "no telemetry"
_ONE_IS_GOOD = (Step(None, Colour.BAD), Step(1, Colour.GOOD))
_WIDTH, _HEIGHT = 6, 4


def build(contract: Contract) -> Row:
    """Build the row."""
    seen = (_redis_read(), _gate_readable(), _controller_seen(contract), _age())
    return Row(100, "Can I trust this?", (*seen, _executor_seen(contract), _damaged(), _thresholds()))


def _redis_read() -> Panel:
    return Panel(
        id=101,
        title="Redis read",
        says="Whether the exporter could read the queue in its last scrape.",
        kind=Kind.STAT,
        unit=Unit.YES_NO,
        queries=(plot(records.REDIS_UP, "read"),),
        no_value=_DARK,
        alerts=(AlertName.TELEMETRY_ABSENT,),
        steps=_ONE_IS_GOOD,
        width=_WIDTH,
        height=_HEIGHT,
    )


def _gate_readable() -> Panel:
    return Panel(
        id=102,
        title="Gate readable",
        says="Whether the gate's own records are there and make sense. If not, everybody reads it as drain.",
        kind=Kind.STAT,
        unit=Unit.YES_NO,
        queries=(plot(records.GATE_READABLE, "readable"),),
        no_value=_DARK,
        steps=_ONE_IS_GOOD,
        width=_WIDTH,
        height=_HEIGHT,
    )


def _controller_seen(contract: Contract) -> Panel:
    return Panel(
        id=103,
        title="Controller last seen",
        says="Seconds since the controller completed a tick. Past the bound admission refuses by itself.",
        kind=Kind.STAT,
        unit=Unit.SECONDS,
        queries=(
            Query(
                f"{series(records.SNAPSHOT)} - on ({telemetry.QUEUE_LABEL}) {series(records.CONTROLLER_SEEN)}",
                "ago",
            ),
        ),
        no_value=_DARK,
        alerts=(AlertName.CONTROLLER_SILENT,),
        steps=(Step(None, Colour.GOOD), Step(contract.timings.controller_silent_s, Colour.BAD)),
        width=_WIDTH,
        height=_HEIGHT,
    )


def _age() -> Panel:
    return Panel(
        id=104,
        title="Age of the reading",
        says="Seconds since the one instant that all these figures are from. It must stay small.",
        kind=Kind.STAT,
        unit=Unit.SECONDS,
        queries=(since(records.SNAPSHOT),),
        no_value=_DARK,
        alerts=(AlertName.TELEMETRY_STALE, AlertName.TELEMETRY_ABSENT),
        width=_WIDTH,
        height=_HEIGHT,
    )


def _executor_seen(contract: Contract) -> Panel:
    return Panel(
        id=105,
        title="Executor last seen",
        says="Seconds since an executor asked for the live run. Past a lease, a live run is nobody's.",
        kind=Kind.STAT,
        unit=Unit.SECONDS,
        queries=(since(records.EXECUTOR_SEEN),),
        no_value="the automation service is not scraped",
        alerts=(AlertName.EXECUTOR_DEAD,),
        steps=(Step(None, Colour.GOOD), Step(contract.timings.run_lease_s, Colour.BAD)),
        width=_WIDTH,
        height=_HEIGHT,
    )


def _damaged() -> Panel:
    return Panel(
        id=107,
        title="Damaged parts",
        says="Parts of the queue's data that were written over or cut by hand: no figure is made of them.",
        kind=Kind.STAT,
        unit=Unit.COUNT,
        queries=(Query(f"sum by ({telemetry.QUEUE_LABEL}) ({series(records.DAMAGED)})", "parts"),),
        no_value=_DARK,
        alerts=(AlertName.TELEMETRY_DAMAGED,),
        steps=(Step(None, Colour.GOOD), Step(1, Colour.BAD)),
        width=_WIDTH,
        height=_HEIGHT,
    )


def _thresholds() -> Panel:
    return Panel(
        id=106,
        title="Thresholds in force",
        says="What the controller decides on; the rules were generated with their own.",
        kind=Kind.LINES,
        unit=Unit.COUNT,
        queries=(plot(records.THRESHOLD, f"{{{{{telemetry.NAME_LABEL}}}}}"),),
        no_value=_DARK,
        alerts=(AlertName.THRESHOLD_DRIFT,),
        width=24 - 2 * _WIDTH,
        height=_HEIGHT,
    )
