"""Parse `sluicegate dashboards …` and wire it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboards.generate import render_all
from sluicegate.console import Check, SettingsFile, command_line, write_generated
from sluicegate.settings import load

app = command_line(
    "Generate the Grafana dashboards from the settings.", "sluicegate dashboards generate --out grafana/dashboards/"
)


@app.callback()
def dashboards() -> None:
    """Generate the Grafana dashboards from the settings."""


@app.command(epilog="Example: sluicegate dashboards generate --check")
def generate(
    settings: SettingsFile = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the dashboards go.")] = Path(
        "dashboards/generated"
    ),
    check: Check = False,
) -> None:
    """Write every dashboard as JSON for Grafana 11."""
    write_generated(render_all(load(settings), out), check=check, command="sluicegate dashboards generate")
