"""What came of earlier runs: how they ended, how long they and their steps took, and which were not opened."""

from __future__ import annotations

from dashboards.model import Kind, Panel, Query, Row, Unit
from dashboards.queries import mean, plot, series
from sluicegate import records, telemetry

_RESULT = f"{{{{{telemetry.RESULT_LABEL}}}}}"
_STEP = f"{{{{{telemetry.STEP_LABEL}}}}}"
_DARK = "no telemetry"


def build() -> Row:
    """Build the row; counts are since the queue was opened, so that none is lost between two looks."""
    return Row(
        800,
        "What came of earlier runs?",
        (
            _count(801, "Runs by result", "Runs that ended.", plot(records.RUNS, _RESULT)),
            _count(802, "Canaries by result", "Canaries that ended.", plot(records.CANARIES, _RESULT)),
            _count(
                803,
                "Runs not opened",
                "By what forbade it; a named person is bound by none of it.",
                plot(records.RUNS_REFUSED, f"{{{{{telemetry.REASON_LABEL}}}}}"),
            ),
            _count(
                804,
                "Steps by result",
                "Steps of runs that ended; those that never did so have no line.",
                Query(f"{series(records.STEPS)} > 0", f"{_STEP}: {_RESULT}"),
            ),
            _took(
                805,
                "How long a step takes",
                "The mean of all steps of that verb since the queue was opened.",
                Query(mean(records.STEP_SECONDS, records.STEPS, telemetry.STEP_LABEL), _STEP),
            ),
            _took(
                806,
                "How long a run takes",
                "The mean of all runs with that result since the queue was opened.",
                Query(mean(records.RUN_SECONDS, records.RUNS, telemetry.RESULT_LABEL), _RESULT),
            ),
        ),
    )


def _count(panel_id: int, title: str, says: str, query: Query) -> Panel:
    return Panel(panel_id, title, says, Kind.LINES, Unit.COUNT, (query,), _DARK, width=8)


def _took(panel_id: int, title: str, says: str, query: Query) -> Panel:
    nothing = "none has ended yet, or no telemetry"
    return Panel(panel_id, title, says, Kind.LINES, Unit.SECONDS, (query,), nothing, width=8)
