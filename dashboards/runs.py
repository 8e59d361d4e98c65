"""The runs of runbooks: is one under way and does it go on, how far is the recovery, and what came of earlier ones."""

from __future__ import annotations

from dashboards.model import Dashboard
from dashboards.overview import rows
from dashboards.rows import recovery, run_outcomes, run_progress
from sluicegate.records import RUNS_DASHBOARD_UID
from sluicegate.settings import Settings


def runs(settings: Settings) -> Dashboard:
    """Build the dashboard of the runs; what it shares with the overview are the overview's own panels."""
    shared = {panel.id: panel for row in rows(settings) for panel in row.panels}
    return Dashboard(
        uid=RUNS_DASHBOARD_UID,
        title="Sluicegate runbook runs",
        says="From the same figures that the steps and gates of a run decide on.",
        rows=(
            run_progress.build(settings.contract, shared),
            recovery.build(settings.contract, shared),
            run_outcomes.build(),
        ),
        queue=settings.queue,
    )
