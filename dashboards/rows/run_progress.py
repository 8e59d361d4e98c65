"""Is a run under way, does anybody carry it out, and does it wait for a person?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dashboards.model import Kind, Panel, Query, Row, Unit
from dashboards.queries import series
from sluicegate import records, telemetry
from sluicegate.records import AlertName
from sluicegate.settings import Contract

_GATE, _LIVE, _PIN, _ROLLED_BACK, _EXECUTOR = 201, 205, 206, 207, 105


def build(contract: Contract, shared: Mapping[int, Panel]) -> Row:
    """Build the row; `shared` are the overview's panels by their id."""
    del contract
    started = Panel(
        id=601,
        title="Run under way for",
        says="Since the live run that holds the queue's lock was opened.",
        kind=Kind.STAT,
        unit=Unit.SECONDS,
        queries=(Query(f"time() - {series(records.RUN_STARTED)}", f"{{{{{telemetry.RUNBOOK_LABEL}}}}}"),),
        no_value="no run is live",
        alerts=(AlertName.EXECUTOR_HOLDING,),
        width=6,
        height=6,
    )
    return Row(
        600,
        "Is a run under way, and does it go on?",
        (
            started,
            replace(shared[_EXECUTOR], height=6),
            replace(shared[_LIVE], width=12, height=6),
            replace(shared[_GATE], width=8, height=6),
            replace(shared[_PIN], width=8, height=6),
            replace(shared[_ROLLED_BACK], width=8, height=6),
        ),
    )
