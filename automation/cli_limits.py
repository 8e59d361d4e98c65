"""Parse the commands of `sluicegate automation` on what forbids runs, and wire them."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from automation.sentences import limits_lines
from sluicegate.all_queues import AllQueues
from sluicegate.console import (
    Actor,
    AsJson,
    Queue,
    RedisUrl,
    SettingsFile,
    Why,
    fail,
    in_a_sentence,
    opened,
    person,
    refuse_unopened,
    settings_of,
)
from sluicegate.errors import StoreRejected
from sluicegate.gate_sentences import lost_its_keys
from sluicegate.store import Store

AllOfThem = Annotated[bool, typer.Option("--all-queues", help="Of every queue on the server, not of this one.")]


class Switch(StrEnum):
    """Name what the kill switch can be."""

    ON = "on"
    OFF = "off"


def kill_switch(
    state: Annotated[Switch, typer.Argument(help="on or off.", show_default=False)],
    actor: Actor,
    reason: Why,
    all_queues: AllOfThem = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Forbid every run that no named person asked for, and roll live recoveries back; `off` allows them again.

    Exit 1, and nothing is changed, where no queue is open: another queue's runs would go on.
    """
    who, in_force, on = person(actor, reason), settings_of(settings, redis_url, queue), state is Switch.ON
    if all_queues:
        with in_a_sentence(in_force), closing(AllQueues.over(in_force)) as everywhere:
            everywhere.kill_switch(on=on, actor=who.name, reason=who.reason)
        typer.echo(f"The kill switch of all queues is {state}.")
        return
    with opened(in_force) as store:
        _refuse_no_trace(store)
        store.kill_switch(on=on, actor=who.name, reason=who.reason)
    typer.echo(f"The kill switch is {state}.")


def _refuse_no_trace(store: Store) -> None:
    """End the command where there is no queue; one that was lost or can't be read may have runs that are live."""
    try:
        seen = store.observe()
    except StoreRejected:
        return
    if not lost_its_keys(seen):
        refuse_unopened(seen)


def reset_breaker(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Let alerts open runs again after so many queues asked at once that the breaker tripped; exit 1 if it had not."""
    who, in_force = person(actor, reason), settings_of(settings, redis_url, queue)
    with in_a_sentence(in_force), closing(AllQueues.over(in_force)) as everywhere:
        if not everywhere.reset_breaker(who.name, who.reason):
            raise fail("The breaker has not tripped, so nothing was changed.")
    typer.echo("The breaker is reset. Gates that it left closed and pinned are opened by `sluicegate gate open`.")


def limits(
    as_json: AsJson = False, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Show what forbids runs that no named person asked for: switches, breaker, and the runs that are live.

    Exit 1 where no queue is open; what holds over all queues is shown there as well.
    """
    in_force = settings_of(settings, redis_url, queue)
    with opened(in_force) as store, closing(AllQueues.over(in_force)) as everywhere:
        standing, seen = everywhere.standing(), store.observe()
    own = seen.kill_switch
    if as_json:
        typer.echo(json.dumps({"queue": in_force.queue, "kill_switch": own, "all_queues": asdict(standing)}))
    else:
        for line in limits_lines(in_force.queue, own, standing):
            typer.echo(line)
    refuse_unopened(seen)
