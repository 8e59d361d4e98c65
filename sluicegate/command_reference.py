"""Write docs/reference/commands.md from the command lines themselves: every command with its options and an example."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer

from sluicegate.__main__ import PROGRAM, WORDS, parts_folder

_HEAD = """# Commands

Generated from the code by `make generate`; edit the commands' own help, not this page.

A command's `--help` shows the same in a terminal. Exit code 0 is done; 1 is asked for rightly and not done, or found
wanting; 2 is asked for wrongly: a sentence says what, and a hint what to say instead. Ctrl-C ends a command with 130.
"""

# What stands for a value, by the type that typer shows.
_KINDS = {"int": "N", "float": "X", "str": "TEXT", "path": "PATH"}
# Typer's commands and parameters come without public types.
Command = Any
Parameter = Any


@dataclass(frozen=True, slots=True)
class Option:
    """Hold one argument or option as the page shows it: its name, its own help, then bounds and default."""

    name: str
    says: str
    facts: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one command as the page shows it: its words, its help, its example, and what can be said with it."""

    words: str
    says: str
    example: str
    options: tuple[Option, ...]


def reference() -> str:
    """Give the whole page as Markdown."""
    sections = []
    for word, what in WORDS.items():
        entries = [_section(one) for one in entries_of(word)]
        sections.append("\n".join([f"## {word}", "", what.summary, "", *entries]))
    return "\n".join([_HEAD, *sections])


def entries_of(word: str) -> Iterator[Entry]:
    """Give every command behind a word that does something, in the order of its help."""
    app = typer.main.get_command(import_module(WORDS[word].module).app)
    yield from _below(f"{PROGRAM} {word}", app)


def _below(words: str, command: Command) -> Iterator[Entry]:
    commands = getattr(command, "commands", {})
    if not commands or command.invoke_without_command:
        yield entry(words, command)
    for name, below in commands.items():
        yield from _below(f"{words} {name}", below)


def entry(words: str, command: Command) -> Entry:
    """Read one command of typer's into what the page shows of it."""
    context = typer.Context(command, info_name=words)
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    return Entry(
        words=words,
        says=" ".join((command.help or "").split()),
        example=" ".join((command.epilog or "").split()).removeprefix("Example: "),
        options=tuple(Option(_name(one, context), one.help or "", _facts(one)) for one in shown),
    )


def _name(parameter: Parameter, context: typer.Context) -> str:
    """Give `--option METAVAR`, or an argument's name as the usage shows it."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    if parameter.is_flag:
        return " ".join(parameter.opts)
    kind = parameter.display_type(context).strip("<>").removesuffix(" range")
    return " ".join([*parameter.opts, parameter.metavar or _KINDS.get(kind, kind)])


def _facts(parameter: Parameter) -> str:
    facts = []
    if (least := getattr(parameter, "min", None)) is not None:
        most = getattr(parameter, "max", None)
        facts.append(f"At least {least}." if most is None else f"From {least} to {most}.")
    if parameter.required:
        facts.append("Required.")
    if getattr(parameter, "multiple", False):
        facts.append("May be repeated.")
    if parameter.default not in (None, False, "", ...) and not parameter.required:
        facts.append(f"Default: `{getattr(parameter.default, 'value', parameter.default)}`.")
    return " ".join(facts)


def _section(entry: Entry) -> str:
    lines = [f"### {entry.words}", "", entry.says, "", "```console", f"$ {entry.example}", "```", ""]
    if entry.options:
        lines += ["| argument or option | what it says |", "|---|---|"]
        lines += [f"| `{_cell(one.name)}` | {_cell(f'{one.says} {one.facts}'.strip())} |" for one in entry.options]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Keep a bar from ending the cell of a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.path.insert(0, str(parts_folder()))
    print(reference(), end="")
