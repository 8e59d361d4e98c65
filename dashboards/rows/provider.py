"""Is the provider well: its two rates, and how many calls they speak of."""

from __future__ import annotations

from dashboards.model import Colour, Kind, Panel, Row, Step, Unit
from dashboards.queries import plot
from sluicegate import records
from sluicegate.records import AlertName, Record
from sluicegate.settings import Contract

_IDLE = "no call in the window, or no telemetry"


def build(contract: Contract) -> Row:
    """Build the row."""
    bounds = contract.thresholds
    return Row(
        400,
        "Is the provider well?",
        (
            _rate(
                401,
                "Calls answered 5xx",
                records.PROVIDER_5XX_RATE,
                bounds.drain_provider_5xx_rate,
                AlertName.PROVIDER_ERRORS_HIGH,
            ),
            _rate(
                402,
                "Calls timed out",
                records.PROVIDER_TIMEOUT_RATE,
                bounds.drain_provider_timeout_rate,
                AlertName.PROVIDER_TIMEOUTS_HIGH,
            ),
            Panel(
                id=403,
                title="Calls in the window",
                says=(
                    f"The rates count from {bounds.sample_min_calls} calls (the line) or {bounds.sample_min_failed}"
                    f" failed ones on, and nothing drains on fewer than {bounds.drain_min_failed} failed calls."
                ),
                kind=Kind.LINES,
                unit=Unit.COUNT,
                queries=(
                    plot(records.PROVIDER_WINDOW_CALLS, "calls"),
                    plot(records.PROVIDER_WINDOW_FAILED_CALLS, "failed"),
                ),
                no_value="no telemetry",
                alerts=(AlertName.PROVIDER_ERRORS_HIGH, AlertName.PROVIDER_TIMEOUTS_HIGH),
                steps=(Step(None, Colour.GREY), Step(bounds.sample_min_calls, Colour.NOTICE)),
                width=8,
            ),
        ),
    )


def _rate(panel_id: int, title: str, record: Record, bound: float, alert: AlertName) -> Panel:
    return Panel(
        id=panel_id,
        title=title,
        says="Share of the calls that ended in the window; it starts anew when a recovery begins. Line: drain.",
        kind=Kind.LINES,
        unit=Unit.RATIO,
        queries=(plot(record, "share"),),
        no_value=_IDLE,
        alerts=(alert,),
        steps=(Step(None, Colour.GOOD), Step(bound, Colour.BAD)),
        width=8,
    )
