"""Parse `sluicegate exporter …` and wire it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from pathlib import Path
from typing import Annotated

import structlog
import typer

from exporter import acl as acl_user
from exporter.app import process_registry, reasons
from exporter.reading import Scrape
from exporter.reference import reference as metrics_reference
from exporter.rendering import Renderer
from exporter.server import Exporter
from sluicegate import logs
from sluicegate.console import Host, Port, RedisUrl, SettingsFile, command_line, settings_of
from sluicegate.errors import UsageError
from sluicegate.settings import default_settings, parse

app = command_line(
    "Serve the telemetry fields to Prometheus.",
    "sluicegate exporter serve --redis-url redis://127.0.0.1:6379/0 --port 9108",
)

Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", metavar="NAME", help="Queue to read; repeat for more. Default: the settings' own."),
]


AclUser = Annotated[str, typer.Option("--user", metavar="NAME", help="Name of the Redis user.")]


@app.callback(invoke_without_command=True, no_args_is_help=True, epilog="Example: sluicegate exporter --once")
def exporter(
    context: typer.Context,
    *,
    as_once: Annotated[bool, typer.Option("--once", help="Print one scrape, as `exporter once` does.")] = False,
    as_acl: Annotated[
        bool, typer.Option("--print-acl", help="Print the line of the read-only user, as `exporter acl` does.")
    ] = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queues = None,
    user: AclUser = "sluicegate-exporter",
) -> None:
    """Serve the telemetry fields to Prometheus."""
    if context.invoked_subcommand is None and as_once != as_acl:
        if as_once:
            once(settings, redis_url, queue)
        else:
            acl(settings, queue, user)
        return
    given = as_once or as_acl or settings or redis_url or queue
    if context.invoked_subcommand is None or given:
        raise UsageError(
            "Options before a command of `sluicegate exporter` belong to --once or to --print-acl, one of them.",
            "Name the command first, for example: sluicegate exporter serve --queue nightly",
        )


@app.command(epilog="Example: sluicegate exporter serve --queue default --queue nightly --port 9108")
def serve(
    settings: SettingsFile = None,
    host: Host = None,
    port: Port = None,
    redis_url: RedisUrl = None,
    queue: Queues = None,
    web_config_file: Annotated[
        Path | None,
        typer.Option("--web-config-file", metavar="FILE", help="TLS and passwords, in the exporter toolkit's format."),
    ] = None,
) -> None:
    """Serve /metrics until Ctrl-C or SIGTERM; Redis may come and go."""
    logs.configure()
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    flags = {"exporter.host": host, "exporter.port": port, "exporter.web_config_file": web_config_file}
    exporter = Exporter(settings_of(settings, redis_url, flags=flags), _queues(queue))
    exporter.start()
    try:
        told.wait()
    finally:
        exporter.stop()
    structlog.get_logger("exporter").info("exporter_stopped")


@app.command(epilog="Example: sluicegate exporter once --queue default | promtool check metrics")
def once(settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queues = None) -> None:
    """Print one scrape; exit 1 when a queue can't be read."""
    logs.configure(logging.ERROR)
    exporter = Exporter(settings_of(settings, redis_url), _queues(queue))
    try:
        scrape = asyncio.run(_scraped(exporter))
    finally:
        exporter.stop()
    body, _ = Renderer(process_registry()).render(scrape, "text/plain")
    typer.echo(body.decode(), nl=False)
    if not scrape.complete:
        typer.echo(reasons(scrape.readings), err=True, nl=False)
        raise typer.Exit(1)


async def _scraped(exporter: Exporter) -> Scrape:
    try:
        return await exporter.collector.scrape()
    finally:
        await exporter.leave()


@app.command(epilog="Example: sluicegate exporter acl --queue default --user sluicegate-exporter")
def acl(
    settings: SettingsFile = None,
    queue: Queues = None,
    user: AclUser = "sluicegate-exporter",
) -> None:
    """Print the line that creates the exporter's read-only Redis user; put your own password into it."""
    names = _queues(queue) or (settings_of(settings).queue,)
    typer.echo(acl_user.acl_line(user, names))


@app.command(epilog="Example: sluicegate exporter reference > docs/reference/metrics.md")
def reference() -> None:
    """Print the reference of all metrics as Markdown."""
    typer.echo(metrics_reference(), nl=False)


def _queues(names: list[str] | None) -> tuple[str, ...]:
    """Give the queues of the command line, each a name that the settings accept too."""
    body = default_settings().model_dump(mode="json")
    return tuple(parse({**body, "queue": name}, f"--queue {name}").queue for name in names or ())
