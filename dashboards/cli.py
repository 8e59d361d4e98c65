"""Parse `sluicegate dashboards …` and wire it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboards.generate import dashboards, render_all
from dashboards.grafana import body
from dashboards.push import Grafana
from sluicegate.console import Check, SettingsFile, command_line, write_generated
from sluicegate.secret_file import read_secret
from sluicegate.settings import load

app = command_line(
    "Generate the Grafana dashboards from the settings, and push them.",
    "sluicegate dashboards generate --out grafana/dashboards/",
)


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


@app.command(
    epilog="Example: sluicegate dashboards push --grafana-url http://127.0.0.1:3000 --token-file grafana.token"
)
def push(
    grafana_url: Annotated[str, typer.Option("--grafana-url", metavar="URL", help="Address of Grafana.")],
    token_file: Annotated[
        Path, typer.Option("--token-file", metavar="FILE", help="File with the token of a service account.")
    ],
    *,
    settings: SettingsFile = None,
    folder: Annotated[
        str, typer.Option("--folder", metavar="UID", help="Folder that gets them; it is made where it is missing.")
    ] = "sluicegate",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a dashboard that is there and differs, whoever changed it.")
    ] = False,
    within: Annotated[
        float, typer.Option("--within", metavar="SECONDS", min=1, help="How long an answer may take.")
    ] = 10,
) -> None:
    """Send every dashboard to a Grafana; one that is there and differs is left alone without --overwrite."""
    token = read_secret(token_file, "--token-file")
    conflicts = 0
    with Grafana(grafana_url, token, within_s=within) as grafana:
        grafana.provide_folder(folder)
        for dashboard in dashboards(load(settings)):
            pushed = grafana.push(body(dashboard), folder, overwrite=overwrite)
            typer.echo(f"{pushed.outcome}: {dashboard.uid}{pushed.said}", err=pushed.is_conflict)
            conflicts += pushed.is_conflict
    if conflicts:
        typer.echo("Look at what differs, then push with --overwrite to replace it.", err=True)
        raise typer.Exit(1)
