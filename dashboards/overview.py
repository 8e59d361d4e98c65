"""The overview: its rows are the questions in the order in which they are asked."""

from __future__ import annotations

from dashboards.model import Dashboard, Row
from dashboards.rows import gate, provider, risk, trust, work
from sluicegate.records import DASHBOARD_UID
from sluicegate.settings import Settings

_ROWS = (trust, gate, risk, provider, work)


def rows(settings: Settings) -> tuple[Row, ...]:
    """Build the rows of the overview."""
    return tuple(row.build(settings.contract) for row in _ROWS)


def overview(settings: Settings) -> Dashboard:
    """Build the overview; its lines are the settings' thresholds, its series the records that the alerts compare."""
    return Dashboard(
        uid=DASHBOARD_UID,
        title="Sluicegate overview",
        says="From the same figures that the controller, the alerts and the runs' gates decide on.",
        rows=rows(settings),
        queue=settings.queue,
    )
