"""Turn settings into Grafana's files."""

from __future__ import annotations

from pathlib import Path

from dashboards.grafana import spell
from dashboards.model import Dashboard
from dashboards.overview import overview
from dashboards.runs import runs
from sluicegate.settings import Settings


def dashboards(settings: Settings) -> tuple[Dashboard, ...]:
    """Build every dashboard."""
    return overview(settings), runs(settings)


def render_all(settings: Settings, out: Path) -> dict[Path, str]:
    """Render every dashboard, by where its file belongs."""
    return {out / f"{dashboard.uid}.json": spell(dashboard) for dashboard in dashboards(settings)}
