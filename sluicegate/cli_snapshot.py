"""Parse `sluicegate queue snapshot` and `sluicegate queue restore`, and wire them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.console import (
    Actor,
    AsJson,
    Queue,
    RedisUrl,
    SettingsFile,
    Why,
    fail,
    opened,
    person,
    refuse_no_folder,
    settings_of,
)
from sluicegate.damage import damaged_lists
from sluicegate.errors import HalfRestored, NoContract, StoreFull
from sluicegate.gate_sentences import opening
from sluicegate.printable import printable
from sluicegate.restore import Wish, restore
from sluicegate.restore_sentences import refused_said, restored_body, restored_lines, written_body, written_lines
from sluicegate.snapshot import write_snapshot

# Names in one message; the others are counted.
_FEW = 5

File = Annotated[Path, typer.Argument(metavar="FILE", help="The snapshot's file; `.jsonl.gz` says what is in it.")]


def snapshot(
    file: File,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Write down every job that is not final, live refusals, the ledger and the contract.

    Exit 1 where jobs or the lists of jobs were damaged by hand, or a restore is not complete: then it may lack jobs.
    """
    refuse_no_folder("The snapshot", file)
    with opened(settings_of(settings, redis_url, queue)) as store:
        try:
            written = write_snapshot(store, file, moving=True)
        except OSError as error:
            raise fail(f"The snapshot {file} cannot be written: {error.strerror}.") from error
        except NoContract as error:
            raise fail(
                str(error), f"Another queue may be meant (--queue NAME); else `{opening(store.observe())}`."
            ) from error
        except HalfRestored as error:
            raise fail(str(error), "Complete the restore first, or give this snapshot another name.") from error
        damaged = damaged_lists(store.observe())
    for line in [json.dumps(written_body(file, written))] if as_json else written_lines(file, written):
        typer.echo(line)
    if written.half_restored:
        raise fail(
            f"A restore into the queue is not complete, so {file} lacks what it has not put back.",
            "The same restore again completes it.",
        )
    if written.left_out:
        few = written.left_out[:_FEW]
        more = f", and {len(written.left_out) - len(few)} more" if len(written.left_out) > len(few) else ""
        raise fail(
            f"The records of {', '.join(map(printable, few))}{more} were damaged by hand, or are no UTF-8, so {file} "
            "lacks them: no restore would take them.",
            "`sluicegate queue show ID` shows one.",
        )
    if damaged:
        raise fail(
            f"The queue's lists of jobs were damaged by hand ({', '.join(sorted(damaged))}), so {file} may lack jobs.",
            "`sluicegate queue doctor` names one that no list has.",
        )


def restore_snapshot(
    file: File,
    actor: Actor,
    reason: Why,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look at everything, say what would be done.")] = False,
    suspect_unsafe: Annotated[
        bool,
        typer.Option(
            "--suspect-unsafe",
            help="Pending jobs of `unsafe` classes come back unknown: they may have run after the snapshot.",
        ),
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Give up another restore that was cut short; what it put back stays.")
    ] = False,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Put back what is not there, on a new server or beside a live queue; the gate is closed and pinned."""
    who = person(actor, reason)
    loaded = settings_of(settings, redis_url, queue)
    wish = Wish(file, who.name, who.reason, dry_run, suspect_unsafe, take_over)
    with opened(loaded) as store:
        try:
            result = restore(store, wish)
        except StoreFull as error:
            raise fail(
                "The server's memory is full, so the restore stopped; what it began stays closed until it is complete.",
                "`CONFIG SET maxmemory` with more makes room; then the same command again goes on.",
            ) from error
    if not result.done:
        said = refused_said(loaded.queue, result)
        raise fail(said.sentence, said.hint)
    if as_json:
        typer.echo(json.dumps(restored_body(result)))
        return
    for line in restored_lines(loaded.queue, wish, result):
        typer.echo(line)
