"""Parse `sluicegate automation audit …` and wire it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from automation.audit_file import BadExport, entry_line, head_line, read_export
from sluicegate.all_queues import AllQueues
from sluicegate.audit import Break, Chain, Ends, Entry, Noted
from sluicegate.calls import Calls
from sluicegate.console import (
    AsJson,
    Queue,
    RedisUrl,
    SettingsFile,
    command_line,
    fail,
    in_a_sentence,
    opened,
    refuse_no_queue,
    settings_of,
)
from sluicegate.errors import UsageError
from sluicegate.settings import Settings
from sluicegate.store import Store

app = command_line(
    "Check and export the audit log: every gate move, run, step and named act, each chained to the one before.",
    "sluicegate automation audit verify --noted 4711:0f3c…",
)

AllOfThem = Annotated[bool, typer.Option("--all-queues", help="The log of what holds over all queues of the server.")]
Parts = Iterator[tuple[Ends, tuple[Entry, ...]]]


@app.command(epilog="Example: sluicegate automation audit verify --noted 4711:8ad1e2b0c9d84f6a7b3c5d1e0f9a8b7c6d5e4f3a")
def verify(
    noted: Annotated[
        str | None, typer.Option("--noted", metavar="N:HASH", help="An entry's number and hash, as kept elsewhere.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="An export, instead of what the server has.")
    ] = None,
    all_queues: AllOfThem = False,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Follow the chain from its base to its head; exit 1 and a line for each break where it is not whole.

    Exit 1 as well where there is no entry and no queue is open.
    """
    kept = _noted(noted)
    if file is not None:
        breaks, ends = _checked(_of_file(file), kept)
    else:
        in_force = settings_of(settings, redis_url, queue)
        with _parts(in_force, all_queues=all_queues) as parts:
            breaks, ends = _checked(parts, kept)
        if not breaks:
            _refuse_none(in_force, ends, all_queues=all_queues)
    if as_json:
        body = {"breaks": [{"fault": one.fault, "said": one.said} for one in breaks], "last": ends.number}
        typer.echo(json.dumps(body | {"hash": ends.hash, "first": ends.base_number + 1}))
    else:
        for one in breaks:
            typer.echo(f"{one.fault}: {one.said}")
        if not breaks:
            typer.echo(_whole(ends))
    if breaks:
        raise typer.Exit(1)


@app.command(epilog="Example: sluicegate automation audit export --out audit.jsonl")
def export(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where it goes; without it, to the terminal.")
    ] = None,
    all_queues: AllOfThem = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Write the whole log as JSON lines, the chain's ends first; `verify --file` checks it without a server.

    Exit 1, and no file, where there is no entry and no queue is open.
    """
    in_force = settings_of(settings, redis_url, queue)
    with _parts(in_force, all_queues=all_queues) as parts:
        # The ends of the last part hold for everything that was read before it.
        ends, entries = None, list[Entry]()
        base: Ends | None = None
        for ends, part in parts:
            base = base or ends
            entries += part
    if ends is None or base is None:
        raise fail("The server gave no audit log.")
    _refuse_none(in_force, ends, all_queues=all_queues)
    whole = Ends(ends.number, ends.hash, base.base_number, base.base_hash)
    text = "\n".join([head_line(in_force.queue, whole), *map(entry_line, entries)])
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The export can't be written to {out}: {error.strerror}.") from error
    typer.echo(f"{len(entries)} entries are in {out}. Keep elsewhere: {whole.number}:{whole.hash}")


@contextmanager
def _parts(settings: Settings, *, all_queues: bool) -> Iterator[Parts]:
    with in_a_sentence(settings), ExitStack() as stack:
        calls: Calls = AllQueues.over(settings) if all_queues else Store.of(settings, read_only=True)
        stack.callback(calls.close)
        yield calls.audit()


def _refuse_none(settings: Settings, ends: Ends, *, all_queues: bool) -> None:
    """End the command where the log is empty and of no queue; that of one that was taken away is followed."""
    if ends.number == 0 and not all_queues:
        with opened(settings, read_only=True) as store:
            refuse_no_queue(store)


def _of_file(file: Path) -> Parts:
    try:
        yield read_export(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The export {file} can't be read: {error.strerror}.") from error
    except (BadExport, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is no export of an audit log: {error}.") from error


def _checked(parts: Parts, noted: Noted | None) -> tuple[list[Break], Ends]:
    chain: Chain | None = None
    breaks: list[Break] = []
    ends = Ends(0, "", 0, "")
    for ends, entries in parts:
        chain = chain or Chain(ends.base_number, ends.base_hash, noted)
        breaks += chain.follow(entries)
    if chain is not None:
        breaks += chain.end(ends)
    return breaks, ends


def _whole(ends: Ends) -> str:
    if ends.number == 0:
        return "The audit log is empty: nothing has happened yet, or everything is gone."
    return f"Entries {ends.base_number + 1} to {ends.number} are whole. Keep elsewhere: {ends.number}:{ends.hash}"


def _noted(text: str | None) -> Noted | None:
    if text is None:
        return None
    try:
        return Noted.read(text)
    except ValueError as error:
        raise UsageError(f"--noted {text!r} is {error}.", "`audit verify` and `audit export` print one.") from error
