"""Parse `sluicegate automation report` and wire it."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer

from automation.cli_people import RunId, found
from automation.incident.gathering import gather
from automation.incident.rendering import markdown, page
from sluicegate.console import Queue, RedisUrl, SettingsFile, opened, settings_of
from sluicegate.generated import write
from sluicegate.prometheus import WITHIN_S, Prometheus
from sluicegate.secret_file import read_secret

REPORT_EXAMPLE = (
    "Example: sluicegate automation report 20261129T144638-1a2b --prometheus-url http://127.0.0.1:9090 --out incidents"
)


def report(
    run_id: RunId,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder that gets RUN.html and RUN.md.")] = Path(),
    prometheus_url: Annotated[
        str | None,
        typer.Option("--prometheus-url", metavar="URL", help="Whose history is read; the settings' own, if not named."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="File with the bearer token for Prometheus.")
    ] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Write what happened in a run, as one page that stands for itself and as Markdown; exit 1 without such a run.

    It holds what is kept about the run and a while around it: the gate's moves, the journal, who did what, the
    jobs that ended; with a Prometheus also the figures, the alerts, and a replay of the rules.
    """
    in_force = settings_of(settings, redis_url, queue)
    url = prometheus_url or in_force.automation.prometheus_url
    token = read_secret(token_file, "--token-file") if token_file is not None else None
    with ExitStack() as stack:
        store = stack.enter_context(opened(in_force))
        prometheus = stack.enter_context(closing(Prometheus(url, token=token, within_s=WITHIN_S))) if url else None
        incident = gather(store, in_force, found(store, run_id), prometheus)
    files = {out / f"{run_id}.html": page(incident), out / f"{run_id}.md": markdown(incident)}
    write(files)
    for path in files:
        typer.echo(path)
