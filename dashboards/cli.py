"""Parse `sluicegate dashboards …` and wire it."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dashboards.chromium import take_picture
from dashboards.generate import dashboards, render_all
from dashboards.grafana import body
from dashboards.page import render_page, size
from dashboards.plotted import Plotter
from dashboards.push import Grafana
from sluicegate.console import Check, SettingsFile, command_line, write_generated
from sluicegate.period import NOW, period_ms
from sluicegate.prometheus import Prometheus
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


@app.command(epilog="Example: sluicegate dashboards picture --prometheus-url http://127.0.0.1:9090 --since 15m --out .")
def picture(
    prometheus_url: Annotated[str, typer.Option("--prometheus-url", metavar="URL", help="Whose data is drawn.")],
    *,
    settings: SettingsFile = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="From when on: a duration ago, or a time.")
    ] = "15m",
    until: Annotated[str, typer.Option("--until", metavar="TIME", help="Until when.")] = NOW,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the pictures go.")] = Path(),
    says: Annotated[str, typer.Option("--says", metavar="TEXT", help="A line under the title.")] = "",
) -> None:
    """Draw every dashboard with a Prometheus's data and let a headless Chromium take its picture.

    The same panels, queries, places and thresholds as in Grafana, but not Grafana's drawing.
    """
    from_ms, to_ms = period_ms(since, until, datetime.now(UTC))
    with closing(Prometheus(prometheus_url)) as prometheus:
        for dashboard in dashboards(load(settings)):
            plotted = Plotter(prometheus, from_ms, to_ms).plot(dashboard)
            path = out / f"{dashboard.uid}.png"
            take_picture(render_page(plotted, says or dashboard.says), *size(plotted), path)
            typer.echo(f"written: {path}")
