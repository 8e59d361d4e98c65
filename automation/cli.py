"""Parse `sluicegate automation …` and wire it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from automation.cli_audit import app as audit
from automation.cli_limits import kill_switch, limits, reset_breaker
from automation.cli_people import RunId, abort, approve, found, hold, resume
from automation.cli_report import REPORT_EXAMPLE, report
from automation.following import follow
from automation.notices.silences import Silenced
from automation.sentences import history_lines, opening_said, run_row
from automation.service import Automation, runbooks_in_force
from automation.starting import start_arguments
from sluicegate import logs
from sluicegate.console import (
    Actor,
    AsJson,
    Host,
    Person,
    Port,
    Queue,
    RedisUrl,
    SettingsFile,
    Why,
    command_line,
    fail,
    opened,
    person,
    refuse_no_queue,
    settings_of,
)
from sluicegate.errors import UsageError
from sluicegate.period import lasting_s
from sluicegate.settings import Settings

app = command_line(
    "Run recoveries: the controller, the webhook receiver, the executor, and their control by named persons.",
    "sluicegate automation serve --settings sluicegate.yaml",
)


@app.command(epilog="Example: sluicegate automation serve --port 9109")
def serve(
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    host: Host = None,
    port: Port = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="The bearer token that callers must send.")
    ] = None,
    web_config_file: Annotated[
        Path | None,
        typer.Option("--web-config-file", metavar="FILE", help="TLS and passwords, in the exporter toolkit's format."),
    ] = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM: decide every tick, take webhooks, carry out runs."""
    flags = {"automation.host": host, "automation.port": port, "automation.token_file": token_file}
    in_force = settings_of(settings, redis_url, queue, {**flags, "automation.web_config_file": web_config_file})
    logs.configure()
    asyncio.run(Automation(in_force).serve())


@app.command(epilog="Example: sluicegate automation run drain-and-recover --as ann --reason 'provider is down'")
def run(
    runbook: Annotated[str, typer.Argument(help="Name of the runbook.", show_default=False)],
    actor: Actor,
    reason: Why,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    silence: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Silence what a planned drain makes by itself until the run is over."),
    ] = None,
) -> None:
    """Open a run as a named person; an automation service carries it out. Exit 1 when it was not opened.

    --silence names how long the silence lasts at most, in the Alertmanager of `automation.alertmanager_url`: age, slack
    and forecast of this queue, and never what watches the executor. The service takes it away with the run's end.
    """
    in_force = settings_of(settings, redis_url, queue)
    books = runbooks_in_force(in_force)
    if runbook not in books:
        raise UsageError(f"There is no runbook `{runbook}`.", f"There are {', '.join(sorted(books))}.")
    who = person(actor, reason)
    arguments = start_arguments(books[runbook], who.name, who.reason)
    silenced = _silenced(in_force, str(arguments["run"]), who, silence)
    with opened(in_force) as store:
        answer = store.open_run(arguments)
    said = opening_said(answer)
    if answer.answer != "moved":
        if silenced is not None:
            silenced.take_away()
        raise fail(said.sentence, said.hint)
    typer.echo(said.sentence)


def _silenced(settings: Settings, run_id: str, who: Person, lasts: str | None) -> Silenced | None:
    if lasts is None:
        return None
    url, lasts_s = settings.automation.alertmanager_url, lasting_s("--silence", lasts)
    if url is None:
        raise UsageError("No Alertmanager is named.", "Set automation.alertmanager_url in the settings file.")
    silenced = Silenced(url, settings.queue, run_id)
    typer.echo(f"Silence {silenced.make(f'{who.name}: {who.reason}', lasts_s)} is made, for {lasts} at most.")
    return silenced


@app.command(epilog="Example: sluicegate automation runs --json")
def runs(
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first: id, runbook, state, step, who asked and why, and the rollback's reason.

    Exit 1 where there is none and no queue is open.
    """
    with opened(settings_of(settings, redis_url, queue)) as store:
        listed = store.runs(limit)
        if not listed:
            refuse_no_queue(store)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in listed]))
        return
    for one in listed:
        typer.echo(run_row(one))
    if not listed:
        typer.echo("There is no run yet.")


@app.command(epilog="Example: sluicegate automation show 20261129T144638-1a2b")
def show(
    run_id: RunId,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    as_json: AsJson = False,
) -> None:
    """Show a run with its journal; exit 1 when there is none of this id."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        history = found(store, run_id)
    if as_json:
        typer.echo(json.dumps(asdict(history)))
        return
    for line in history_lines(history):
        typer.echo(line)


@app.command(epilog="Example: sluicegate automation watch")
def watch(
    run_id: Annotated[str | None, typer.Argument(help="The run's id; the newest one, if it is not named.")] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Follow a run's journal until it has ended; exit 1 when it ended in anything but success, 130 on Ctrl-C."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        state = follow(store, run_id, typer.echo)
    if state is None:
        raise fail("There is no run to watch." if run_id is None else f"There is no run {run_id}.")
    if state != "succeeded":
        raise typer.Exit(1)


app.command(epilog="Example: sluicegate automation approve 20261129T144638-1a2b fix --as ann --reason 'switched over'")(
    approve
)
app.command(epilog="Example: sluicegate automation hold --for 10m --as ann --reason 'looking at it'")(hold)
app.command(epilog="Example: sluicegate automation resume --as ann --reason 'looks good'")(resume)
app.command(epilog="Example: sluicegate automation abort --as ann --reason 'wrong alert'")(abort)
app.command(epilog="Example: sluicegate automation kill-switch on --as ann --reason 'maintenance'")(kill_switch)
app.command(epilog="Example: sluicegate automation reset-breaker --as ann --reason 'the rule is mended'")(reset_breaker)
app.command(epilog="Example: sluicegate automation limits --json")(limits)
app.command(epilog=REPORT_EXAMPLE)(report)
app.add_typer(audit, name="audit")
