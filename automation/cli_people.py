"""Parse the commands of `sluicegate automation` by which a named person acts on a live run, and wire them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from automation.api import CAN_WAIT, can_wait
from automation.sentences import aborted_said, not_waiting_said, rolls_back_said
from runbooks.quantity import duration_s
from sluicegate.console import Actor, Person, Queue, RedisUrl, SettingsFile, Why, fail, opened, person, settings_of
from sluicegate.errors import UsageError
from sluicegate.gate import Runbook as LockHolder
from sluicegate.run_replies import RunHistory, RunRecord
from sluicegate.store import Store

RunId = Annotated[str, typer.Argument(help="The run's id.", show_default=False)]
LiveRun = Annotated[str | None, typer.Argument(help="The run's id; the live one, if it is not named.")]


def _step(text: str) -> str:
    if not can_wait(text):
        raise typer.BadParameter(f"no step {text!r} waits for a person; these can: {', '.join(sorted(CAN_WAIT))}")
    return text


def approve(
    run_id: RunId,
    actor: Actor,
    reason: Why,
    step: Annotated[
        str | None,
        typer.Argument(
            parser=_step,
            metavar="STEP",
            help="The step, such as fix, or '4 fix' where a verb stands twice; the one the run is in, if not named.",
        ),
    ] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Let the step that waits for a person pass. Exit 1 when the run is not live or no step waits for a person."""
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        named = step or _waiting(found(store, run_id).run)
        answer = store.approve(run_id, named, actor=who.name, reason=who.reason)
    if answer == "gone":
        raise fail(f"Run {run_id} is not live, so nothing was changed.", _LISTS)
    if answer == "not_waiting":
        raise fail(not_waiting_said(run_id, named), f"`sluicegate automation show {run_id}` says what it waits for.")
    done = "is approved" if answer == "moved" else "was approved before; nothing was changed"
    typer.echo(f"Step {named} of run {run_id} {done}.")


def abort(
    actor: Actor,
    reason: Why,
    run_id: LiveRun = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """End the live run in one move: drain/closed, pinned, its fence revoked. Exit 1 when nothing was changed.

    A run that holds no lock is named by its id; it just ends, and the gate stays as it is.
    """
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        run = found(store, run_id).run if run_id is not None else None
        if run is not None and not run.live:
            raise fail(f"Run {run_id} is not live, so nothing was changed.")
        if run is not None and run.runbook not in set(LockHolder):
            _abort_beside(store, run.run_id, who)
            return
        answer = store.order("abort", who.name, who.reason, run=run_id or "")
    if answer.answer == "moved":
        said = aborted_said(answer)
        typer.echo(f"{said.sentence}\n{said.hint}")
    elif answer.answer == "gone":
        raise fail(f"Run {run_id} is not live any more, so nothing was changed.", _LISTS)
    elif answer.answer == "unreadable":
        raise fail("The gate's records cannot be read, so nothing was changed.", "`sluicegate gate show` says more.")
    elif answer.run:
        said = rolls_back_said(answer.run)
        raise fail(said.sentence, said.hint)
    else:
        raise fail("There is no live run, so nothing was changed.", "`sluicegate gate drain|hold` moves the gate.")


def _abort_beside(store: Store, run_id: str, who: Person) -> None:
    if store.abort_beside(run_id, actor=who.name, reason=who.reason) != "moved":
        raise fail(f"Run {run_id} is not live any more, so nothing was changed.", _LISTS)
    typer.echo(f"Run {run_id} is ended; it held no lock, so the gate stays as it is.")


def hold(
    actor: Actor,
    reason: Why,
    run_id: LiveRun = None,
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="10m, 90s …; at most `hold_max_s` of the contract.")
    ] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Hold the live recovery where it is: no step ends or begins, its gates go on being measured.

    A hold that nobody resumes in time is the run's rollback. Exit 1 when nothing was changed.
    """
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        named = run_id or _live(store)
        answer, until_ms = store.hold(named, _seconds(lasts), actor=who.name, reason=who.reason)
    if answer != "moved":
        raise fail(f"Run {named} is no live recovery, so nothing was changed.", _LISTS)
    ends = datetime.fromtimestamp(until_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    typer.echo(f"Run {named} is held until {ends}. Then it rolls back, unless `automation resume` comes first.")


def resume(
    actor: Actor,
    reason: Why,
    run_id: LiveRun = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Let a held recovery go on; a hold counts for none of its limits. Exit 1 when nothing was changed."""
    who = person(actor, reason)
    with opened(settings_of(settings, redis_url, queue)) as store:
        named = run_id or _live(store)
        answer = store.resume(named, actor=who.name, reason=who.reason)
    match answer:
        case "moved":
            typer.echo(f"Run {named} goes on.")
        case "unchanged":
            raise fail(f"Run {named} is not held, so nothing was changed.")
        case "expired":
            raise fail(f"The hold of run {named} has expired: it rolls back.", "`sluicegate gate show` says more.")
        case _:
            raise fail(f"Run {named} is no live recovery, so nothing was changed.", _LISTS)


def found(store: Store, run_id: str) -> RunHistory:
    """Give a run with its journal; ends the command where there is none of this id."""
    history = store.run(run_id)
    if history is None:
        raise fail(f"There is no run {run_id}.", _LISTS)
    return history


def _live(store: Store) -> str:
    live = store.observe().gate.run
    if live is None:
        raise fail("There is no live run, so nothing was changed.", _LISTS)
    return live.run_id


def _seconds(lasts: str | None) -> float | None:
    if lasts is None:
        return None
    try:
        return duration_s(lasts)
    except ValueError as error:
        raise UsageError(f"--for {lasts!r} is no time: {error}.", "Write it with its unit: 90s, 10m, 1h.") from error


_LISTS = "`sluicegate automation runs` lists the runs."


def _waiting(run: RunRecord) -> str:
    """Give the step that the run is in, by place and verb, if it is one that can wait for a person."""
    if not can_wait(run.verb):
        at = f"at step {run.verb}" if run.verb else "before its first step"
        raise fail(f"Run {run.run_id} is {at}, which waits for no person; nothing was changed.")
    return f"{run.step} {run.verb}"
