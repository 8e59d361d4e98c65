"""`sluicegate dashboards`: generate the Grafana dashboards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboards.generate import render_all
from sluicegate.generated import outdated, write
from sluicegate.settings import load

app = typer.Typer(
    help="Generate the Grafana dashboards from the settings.",
    epilog="Example: sluicegate dashboards generate --out grafana/dashboards/",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def dashboards() -> None:
    """Generate the Grafana dashboards from the settings."""


@app.command(epilog="Example: sluicegate dashboards generate --check")
def generate(
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="Settings file; without one the drill's settings."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the dashboards go.")] = Path(
        "dashboards/generated"
    ),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when a file is out of date.")] = False,
) -> None:
    """Write every dashboard as JSON for Grafana 11."""
    files = render_all(load(settings), out)
    changed = outdated(files) if check else write(files)
    for path in changed:
        typer.echo(f"{'out of date' if check else 'written'}: {path}")
    if check and changed:
        typer.echo("`sluicegate dashboards generate` with the same options writes them anew.", err=True)
        raise typer.Exit(1)
    typer.echo(f"{len(files) - len(changed)} of {len(files)} files were up to date.")
