"""Parse `sluicegate automation …` and wire it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from automation.api import Waiting, start_arguments
from automation.cli_limits import kill_switch, limits, reset_breaker
from automation.sentences import aborted_said, history_lines, not_waiting_said, opening_said, rolls_back_said, run_row
from automation.service import Automation, lock_holding_runbooks
from sluicegate import logs
from sluicegate.console import (
    Actor,
    AsJson,
    Host,
    Port,
    Queue,
    RedisUrl,
    SettingsFile,
    Why,
    command_line,
    fail,
    opened,
    person,
    settings_of,
)
from sluicegate.errors import UsageError
from sluicegate.replies import RunHistory
from sluicegate.store import Store

app = command_line(
    "Run recoveries: the controller, the webhook receiver, the executor, and their control by named persons.",
    "sluicegate automation serve --settings sluicegate.yaml",
)

RunId = Annotated[str, typer.Argument(help="The run's id.", show_default=False)]


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
) -> None:
    """Open a run as a named person; an automation service carries it out. Exit 1 when it was not opened."""
    books = lock_holding_runbooks()
    if runbook not in books:
        raise UsageError(f"There is no runbook `{runbook}`.", f"There are {', '.join(sorted(books))}.")
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        answer = store.open_run(start_arguments(books[runbook], who.name, who.reason))
    said = opening_said(answer)
    if answer.answer != "moved":
        raise fail(said.sentence, said.hint)
    typer.echo(said.sentence)


@app.command(epilog="Example: sluicegate automation runs --json")
def runs(
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first: id, runbook, state, step, who asked and why, and the rollback's reason."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        found = store.runs(limit)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found]))
        return
    for one in found:
        typer.echo(run_row(one))
    if not found:
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
        history = _found(store, run_id)
    if as_json:
        typer.echo(json.dumps(asdict(history)))
        return
    for line in history_lines(history):
        typer.echo(line)


@app.command(epilog="Example: sluicegate automation approve 20261129T144638-1a2b fix --as ann --reason 'switched over'")
def approve(
    run_id: RunId,
    actor: Actor,
    reason: Why,
    step: Annotated[Waiting | None, typer.Argument(help="The step; the one the run is in, if not named.")] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Let the step that waits for a person pass. Exit 1 when the run is not live or no step waits for a person."""
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        named = step or _waiting(_found(store, run_id))
        answer = store.approve(run_id, named, actor=who.name, reason=who.reason)
    if answer == "gone":
        raise fail(f"Run {run_id} is not live, so nothing was changed.", "`sluicegate automation runs` lists the runs.")
    if answer == "not_waiting":
        raise fail(not_waiting_said(run_id, named), f"`sluicegate automation show {run_id}` says what it waits for.")
    done = "is approved" if answer == "moved" else "was approved before; nothing was changed"
    typer.echo(f"Step {named} of run {run_id} {done}.")


@app.command(epilog="Example: sluicegate automation abort --as ann --reason 'wrong alert'")
def abort(
    actor: Actor,
    reason: Why,
    run_id: Annotated[str | None, typer.Argument(help="The run's id; the live one, if it is not named.")] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """End the live run in one move: drain/closed, pinned, its fence revoked. Exit 1 when nothing was changed."""
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        if run_id is not None and not _found(store, run_id).run.live:
            raise fail(f"Run {run_id} is not live, so nothing was changed.")
        answer = store.order("abort", who.name, who.reason)
    if answer.answer == "moved":
        said = aborted_said(answer)
        typer.echo(f"{said.sentence}\n{said.hint}")
    elif answer.answer == "unreadable":
        raise fail("The gate's records cannot be read, so nothing was changed.", "`sluicegate gate show` says more.")
    elif answer.run:
        said = rolls_back_said(answer.run)
        raise fail(said.sentence, said.hint)
    else:
        raise fail("There is no live run, so nothing was changed.", "`sluicegate gate drain|hold` moves the gate.")


app.command(epilog="Example: sluicegate automation kill-switch on --as ann --reason 'maintenance'")(kill_switch)
app.command(epilog="Example: sluicegate automation reset-breaker --as ann --reason 'the rule is mended'")(reset_breaker)
app.command(epilog="Example: sluicegate automation limits --json")(limits)


def _found(store: Store, run_id: str) -> RunHistory:
    history = store.run(run_id)
    if history is None:
        raise fail(f"There is no run {run_id}.", "`sluicegate automation runs` lists the runs.")
    return history


def _waiting(history: RunHistory) -> Waiting:
    """Give the step that the run is in, if it is one that can wait for a person."""
    verb = history.run.verb
    if verb not in set(Waiting):
        at = f"at step {verb}" if verb else "before its first step"
        raise fail(f"Run {history.run.run_id} is {at}, which waits for no person; nothing was changed.")
    return Waiting(verb)
