"""Share what the commands have in common: their options, who gives an order, and what a failure says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.errors import (
    NoLogin,
    OtherLibrary,
    SluicegateError,
    StoreFull,
    StoreRejected,
    StoreUnavailable,
    UsageError,
)
from sluicegate.gate_sentences import opening
from sluicegate.generated import outdated, write
from sluicegate.redis_address import ELSEWHERE, LOGIN, place
from sluicegate.remedies import BY_NAME
from sluicegate.settings import Settings, load, parse
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="YAML file with the settings; the drill's without one."),
]
RedisUrl = Annotated[
    str | None, typer.Option("--redis-url", metavar="URL", help="Address of the queue's Redis; overrides the settings.")
]
Queue = Annotated[str | None, typer.Option("--queue", metavar="NAME", help="The queue; overrides the settings.")]
Actor = Annotated[str, typer.Option("--as", metavar="NAME", help="Who asks: it is logged.")]
Why = Annotated[str, typer.Option("--reason", metavar="WHY", help="Why: it is logged.")]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option("--port", metavar="N", help="Port to listen on; 0 takes a free one.")]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when a file is out of date.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_LONGEST_NAME = 64
_LONGEST_REASON = 500


def command_line(summary: str, example: str) -> typer.Typer:
    """Make the command line behind a word: its help in one line, and the example that ends it."""
    return typer.Typer(
        help=summary,
        epilog=f"Example: {example}",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )


@dataclass(frozen=True)
class Person:
    """Name who gives an order, and why; both end up in the audit log."""

    name: str
    reason: str


def person(name: str, reason: str) -> Person:
    """Check a name and a reason; raises UsageError where one is empty, too long or not one line."""
    return Person(_one_line("--as", name, _LONGEST_NAME), _one_line("--reason", reason, _LONGEST_REASON))


def _one_line(option: str, text: str, longest: int) -> str:
    line = text.strip()
    if not line or len(line) > longest or not line.isprintable():
        raise UsageError(
            f"{option} is {text[:longest]!r}, not one line of 1 to {longest} characters.",
            "It is written to the log for those who come after you.",
        )
    return line


def settings_of(
    path: Path | None,
    redis_url: str | None = None,
    queue: str | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Read the settings and put the flags over them, under the same bounds.

    `flags` are further ones by the setting they stand for, `exporter.port` for one; None is a flag that was not given.
    """
    named = {"redis_url": redis_url, "queue": queue, **(flags or {})}
    given = {name: value for name, value in named.items() if value is not None}
    loaded = load(path)
    if not given:
        return loaded
    body = loaded.model_dump(mode="json")
    for name, value in given.items():
        section, _, setting = name.rpartition(".")
        (body[section] if section else body)[setting] = value
    return parse(body, "the command line")


def contract_of(path: Path | None, redis_url: str | None, queue: str | None, command: str) -> Settings:
    """Read the settings for a command that writes their contract into the queue; raises UsageError without a file.

    The drill's classes, which every other command may fall back to, would replace those of a queue of one's own.
    """
    if path is None:
        raise UsageError(
            f"`{command}` needs --settings FILE: without one it would write the drill's classes into the queue.",
            f"Name the file that declares this queue's classes: `{command} --settings FILE {BY_NAME}`.",
        )
    return settings_of(path, redis_url, queue)


@contextmanager
def opened(settings: Settings, *, read_only: bool = False) -> Iterator[Store]:
    """Give a store for one command; a server that does not answer becomes one sentence and exit code 1."""
    store = Store.of(settings, read_only=read_only)
    try:
        with in_a_sentence(settings):
            yield store
    finally:
        store.close()


@contextmanager
def in_a_sentence(settings: Settings) -> Iterator[None]:
    """Say in one sentence what became of a server that does not answer, or refuses; it ends the command with code 1."""
    try:
        yield
    except StoreUnavailable as error:
        raise SluicegateError(
            f"The queue's server at {place(settings)} does not answer: {_first_line(error)}\n{ELSEWHERE}"
        ) from error
    except (OtherLibrary, StoreFull) as error:
        raise SluicegateError(str(error)) from error
    except NoLogin as error:
        raise SluicegateError(
            f"The queue's server at {place(settings)} refused the login: {_first_line(error)}\n{LOGIN}"
        ) from error
    except StoreRejected as error:
        raise SluicegateError(
            f"The queue's server at {place(settings)} refused the command: {_first_line(error)}"
        ) from error


def refuse_no_queue(store: Store) -> None:
    """End a command that found nothing with code 1 where no queue is open: of such a one nothing is known."""
    refuse_unopened(store.observe())


def refuse_unopened(seen: Telemetry) -> None:
    """Do the same for what was read already."""
    if not seen.gate.initialised:
        raise fail(
            f"Queue {seen.queue} is not open here, so nothing is known of it.",
            f"Another queue may be meant (--queue NAME); else `{opening(seen)}`.",
        )


def _first_line(error: Exception) -> str:
    line = (str(error).splitlines() or ["no reason given"])[0].strip()
    return f"{re.sub(r'[.]+$', '', line)}."


def refuse_no_folder(what: str, file: Path) -> None:
    """Raise UsageError where a person names a file in a folder that is not there: it was mistyped more often than not.

    `what` begins the sentence, such as "The snapshot".
    """
    try:
        is_there = file.parent.is_dir()
    except OSError as error:
        raise UsageError(f"{what} {file} cannot be written: {error.strerror}.") from error
    if not is_there:
        raise UsageError(
            f"{what} {file} cannot be written: there is no folder {file.parent}.", "Name another, or make it first."
        )


def write_generated(files: Mapping[Path, str], *, check: bool, command: str) -> None:
    """Write the files that are out of date and name them; with `check` only name them, and exit 1 if there are any."""
    changed = outdated(files) if check else write(files)
    for path in changed:
        typer.echo(f"{'out of date' if check else 'written'}: {path}")
    if check and changed:
        typer.echo(f"`{command}` with the same options writes them anew.", err=True)
        raise typer.Exit(1)
    typer.echo(f"{len(files) - len(changed)} of {len(files)} files were up to date.")


def fail(sentence: str, hint: str = "") -> SluicegateError:
    """Make the error that ends a command with exit code 1: a sentence, and the command that unblocks it."""
    return SluicegateError(f"{sentence}\n{hint}" if hint else sentence)
