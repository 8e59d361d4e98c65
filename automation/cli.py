"""Parse `sluicegate automation …` and wire it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from automation.api import start_arguments
from automation.service import Automation, lock_holding_runbooks
from sluicegate import logs
from sluicegate.errors import UsageError
from sluicegate.replies import GateAnswer, RunHistory
from sluicegate.settings import Settings, load, parse
from sluicegate.store import Store

app = typer.Typer(
    help="Run recoveries: the controller, the webhook receiver, the executor, and their control by named persons.",
    epilog="Example: sluicegate automation serve --settings sluicegate.yaml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

SettingsFile = Annotated[Path | None, typer.Option("--settings", help="YAML file with the settings.")]
RedisUrl = Annotated[str | None, typer.Option(help="Address of the queue's Redis; overrides the settings.")]
Queue = Annotated[str | None, typer.Option(help="Queue to act on; overrides the settings.")]
Actor = Annotated[str, typer.Option("--as", help="Your name; it is written to the log.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is written to the log.")]


@app.command(epilog="Example: sluicegate automation serve --port 9109")
def serve(
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM: decide every tick, take webhooks, carry out runs."""
    logs.configure()
    asyncio.run(Automation(_settings(settings, redis_url, queue, host, port)).serve())


@app.command(epilog="Example: sluicegate automation run drain-and-recover --as ann --reason 'provider is down'")
def run(
    runbook: Annotated[str, typer.Argument(help="Name of the runbook.")],
    actor: Actor,
    reason: Reason,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Open a run as a named person; an automation service carries it out. Exit 1 when it was not opened."""
    books = lock_holding_runbooks()
    if runbook not in books:
        raise UsageError(f"There is no runbook `{runbook}`.", f"There are {', '.join(sorted(books))}.")
    _named(actor, reason)
    with _Opened(settings, redis_url, queue) as store:
        answer = store.open_run(start_arguments(books[runbook], actor, reason))
    _said(answer, f"run {answer.run} is open")


@app.command(epilog="Example: sluicegate automation runs --json")
def runs(
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List runs, newest first."""
    with _Opened(settings, redis_url, queue) as store:
        found = store.runs(limit)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found]))
        return
    table = Table("run", "runbook", "state", "step", "trigger", "actor", "reason", "rolled back for")
    for one in found:
        verb = f"{one.step} {one.verb}".strip()
        table.add_row(one.run_id, one.runbook, one.state, verb, one.trigger, one.actor, one.reason, one.rollback_reason)
    Console().print(table)


@app.command(epilog="Example: sluicegate automation show 20261129T144638-1a2b")
def show(
    run_id: Annotated[str, typer.Argument(help="The run's id.")],
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a run with its journal; exit 1 when there is none of this id."""
    with _Opened(settings, redis_url, queue) as store:
        history = store.run(run_id)
    if history is None:
        typer.echo(f"There is no run {run_id}.", err=True)
        raise typer.Exit(1)
    typer.echo(json.dumps(asdict(history)) if as_json else _told(history), nl=True)


@app.command(epilog="Example: sluicegate automation approve 20261129T144638-1a2b fix --as ann --reason 'switched over'")
def approve(
    run_id: Annotated[str, typer.Argument(help="The run's id.")],
    step: Annotated[str, typer.Argument(help="The step that waits: fix, canary or approve.")],
    actor: Actor,
    reason: Reason,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Let the step that waits for a person pass."""
    _named(actor, reason)
    with _Opened(settings, redis_url, queue) as store:
        answer = store.approve(run_id, step, actor=actor, reason=reason)
    if answer == "gone":
        typer.echo(f"Run {run_id} is not live; nothing was changed.", err=True)
        raise typer.Exit(1)
    typer.echo(f"{step} is approved" if answer == "moved" else f"{step} was approved before; nothing was changed")


@app.command(epilog="Example: sluicegate automation abort --as ann --reason 'wrong alert'")
def abort(
    actor: Actor, reason: Reason, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """End the live run in one move: drain/closed, pinned, its fence revoked."""
    _named(actor, reason)
    with _Opened(settings, redis_url, queue) as store:
        answer = store.order("abort", actor, reason)
    _said(answer, f"run {answer.run} is aborted; the gate is {answer.drain_state}, pinned: {answer.pin}")


@app.command(epilog="Example: sluicegate automation kill-switch on --as ann --reason 'maintenance'")
def kill_switch(
    state: Annotated[str, typer.Argument(help="on or off.")],
    actor: Actor,
    reason: Reason,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Forbid every run that no named person asked for, and roll a live recovery back; `off` allows them again."""
    if state not in ("on", "off"):
        raise UsageError(f"The kill switch is on or off, not `{state}`.", "Say `on` or `off`.")
    _named(actor, reason)
    with _Opened(settings, redis_url, queue) as store:
        store.kill_switch(on=state == "on", actor=actor, reason=reason)
    typer.echo(f"the kill switch is {state}")


def _told(history: RunHistory) -> str:
    one = history.run
    lines = [f"{one.run_id} {one.runbook} {one.state} (by {one.trigger}, {one.actor}: {one.reason})"]
    for entry in history.journal:
        step = f"{entry.seq} {entry.verb}".strip()
        lines.append(f"  {entry.at_ms}  {step:<12} {entry.phase:<9} {entry.actor}  {entry.text}".rstrip())
    return "\n".join(lines)


_WHY_NOT = {
    "run_live": "A run is live: `sluicegate automation runs` shows it, `sluicegate automation abort` ends it.",
    "duplicates": "Confirmed duplicates are not acknowledged: `sluicegate gate acknowledge --as NAME --reason WHY`.",
    "unreadable": "The gate's records are missing or unreadable: `sluicegate gate show` says what to do.",
    "unchanged": "There was nothing to change.",
}


def _said(answer: GateAnswer, moved: str) -> None:
    """Say what an answer means; exit 1 unless it moved something."""
    if answer.answer == "moved":
        typer.echo(moved)
        return
    typer.echo(_WHY_NOT.get(answer.answer, f"{answer.answer}: {answer.why}"), err=True)
    raise typer.Exit(1)


def _named(actor: str, reason: str) -> None:
    for option, text in (("--as", actor), ("--reason", reason)):
        if not text.strip() or any(ord(character) < ord(" ") for character in text):
            raise UsageError(f"{option} must be one line of text, not {text!r}.", "Say who you are and why.")


def _settings(
    path: Path | None, redis_url: str | None, queue: str | None, host: str | None = None, port: int | None = None
) -> Settings:
    """Read the settings and put the flags over them, under the same bounds."""
    body = load(path).model_dump(mode="json")
    body["automation"].update({key: value for key, value in {"host": host, "port": port}.items() if value is not None})
    body.update({key: value for key, value in {"redis_url": redis_url, "queue": queue}.items() if value is not None})
    return parse(body, "the command line")


class _Opened:
    """Open the store of a command and close it afterwards."""

    def __init__(self, path: Path | None, redis_url: str | None, queue: str | None) -> None:
        settings = _settings(path, redis_url, queue)
        self._opened = Store.connect(settings.redis_url, settings.queue)

    def __enter__(self) -> Store:
        return self._opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()
