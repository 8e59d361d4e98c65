"""How far is the recovery: canaries, the kept backlog, the figures that the gate of a run waits for, and the ramp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dashboards.model import Colour, Kind, Panel, Row, Step, Unit
from dashboards.queries import plot
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.settings import Contract

_ADMITTED, _SLACK, _AGE, _FIVE_XX, _TIMEOUTS, _BY_STATE = 203, 301, 302, 401, 402, 501


def build(contract: Contract, shared: Mapping[int, Panel]) -> Row:
    """Build the row; `shared` are the overview's panels by their id."""
    canaries = Panel(
        id=701,
        title="Canaries in a row",
        says="Successes since the recovery began, until it is green and they are frozen, and how many are required.",
        kind=Kind.LINES,
        unit=Unit.COUNT,
        queries=(plot(records.CANARY_OK_COUNT, "successes"), plot(records.CANARIES_REQUIRED, "required")),
        no_value="no telemetry",
        alerts=(AlertName.RECOVERY_HOLD,),
        steps=(Step(None, Colour.NOTICE), Step(contract.canaries_required, Colour.GOOD)),
        width=8,
    )
    return Row(
        700,
        "How far is the recovery?",
        (
            canaries,
            replace(shared[_AGE], width=8),
            replace(shared[_SLACK], width=8),
            replace(shared[_FIVE_XX], width=6),
            replace(shared[_TIMEOUTS], width=6),
            replace(shared[_BY_STATE], width=6),
            replace(shared[_ADMITTED], width=6),
        ),
    )
