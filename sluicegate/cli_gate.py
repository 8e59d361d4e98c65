"""Parse `sluicegate gate …` and wire it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from sluicegate.console import (
    Actor,
    AsJson,
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
from sluicegate.gate_events import Order
from sluicegate.gate_sentences import gate_body, gate_lines, log_line, order_said
from sluicegate.settings import Settings

app = command_line(
    "Show the gate, and tighten or open it as a named person.",
    'sluicegate gate drain --as ann --reason "the provider is down"',
)

NoPin = Annotated[
    bool, typer.Option("--no-pin", help="Let the controller and webhooks go on from here, instead of pinning.")
]


@app.command(epilog="Example: sluicegate gate show --json")
def show(
    as_json: AsJson = False, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Show the gate: state, why, pin, run, last decision, and what would unblock it."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        telemetry = store.observe()
        history = store.run(telemetry.gate.run.run_id) if telemetry.gate.run is not None else None
    if as_json:
        typer.echo(json.dumps(gate_body(telemetry, history)))
        return
    for line in gate_lines(telemetry, history):
        typer.echo(line)


@app.command("open", epilog='Example: sluicegate gate open --as ann --reason "the provider is back"')
def open_gate(
    actor: Actor,
    reason: Why,
    end_run: Annotated[bool, typer.Option("--end-run", help="End the live run, if there is one.")] = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Open the gate by name; it acknowledges the duplicates known by then. Refused while a run is live."""
    order = Order.OPEN_END_RUN if end_run else Order.OPEN
    _carry_out(order, actor, reason, settings_of(settings, redis_url, queue))


@app.command(epilog='Example: sluicegate gate hold --as ann --reason "nothing opens while I look"')
def hold(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Pin the gate as it stands: nothing loosens it but a person. A live run rolls back."""
    _carry_out(Order.HOLD, actor, reason, settings_of(settings, redis_url, queue))


@app.command(epilog='Example: sluicegate gate reject --as ann --reason "a big import is coming"')
def reject(
    actor: Actor,
    reason: Why,
    no_pin: NoPin = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Admit no new job; workers go on. A live run rolls back."""
    _carry_out(Order.REJECT, actor, reason, settings_of(settings, redis_url, queue), pin=not no_pin)


@app.command(epilog='Example: sluicegate gate drain --as ann --reason "the provider is down"')
def drain(
    actor: Actor,
    reason: Why,
    no_pin: NoPin = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Admit nothing and stop pulling. A live run rolls back."""
    _carry_out(Order.DRAIN, actor, reason, settings_of(settings, redis_url, queue), pin=not no_pin)


@app.command(epilog='Example: sluicegate gate release --as ann --reason "looked at, may go on"')
def release(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Take the pin away and leave the gate as it is: the controller and webhooks may go on."""
    _carry_out(Order.RELEASE, actor, reason, settings_of(settings, redis_url, queue))


@app.command(epilog='Example: sluicegate gate acknowledge --as ann --reason "keys audited, refunds sent"')
def acknowledge(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Say that the confirmed duplicates known by now were looked at."""
    _carry_out(Order.ACKNOWLEDGE, actor, reason, settings_of(settings, redis_url, queue))


@app.command(epilog="Example: sluicegate gate log --limit 20")
def log(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many moves.")] = 50,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """List the gate's moves, newest first."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        entries = store.gate_log(limit)
        if not entries:
            refuse_no_queue(store)
    for entry in entries:
        typer.echo(json.dumps(asdict(entry)) if as_json else log_line(entry))


def _carry_out(order: Order, actor: str, reason: str, settings: Settings, *, pin: bool = True) -> None:
    who = person(actor, reason)
    with opened(settings) as store:
        answer = store.order(order, who.name, who.reason, pin=pin)
        said = order_said(order, answer, store.observe())
    if not said.done:
        raise fail(said.sentence, said.hint)
    typer.echo(said.sentence)
