"""Find runbooks, and hand out only sound ones: read, typed, and past every lint."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from runbooks.document import parse_document, read_document
from runbooks.lints import lint
from runbooks.model import Runbook
from runbooks.reading import read_runbook
from sluicegate.errors import SettingsError, UsageError

_SUFFIX = ".yaml"


def builtin_names() -> tuple[str, ...]:
    """Give the names of the shipped runbooks, sorted."""
    names = (entry.name for entry in files("runbooks").iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def load_builtin(name: str) -> Runbook:
    """Give a shipped runbook; raises UsageError where there is none of this name."""
    if name not in builtin_names():
        raise UsageError(f"There is no runbook `{name}`.", _hint(name, builtin_names()))
    source = f"{name}{_SUFFIX}"
    body = files("runbooks").joinpath(source).read_bytes()
    return sound(read_runbook(parse_document(body, source), source))


def load_file(path: Path) -> Runbook:
    """Give the runbook of a file; raises SettingsError for what is not well formed, typed or sound."""
    return sound(read_file(path))


def read_file(path: Path) -> Runbook:
    """Give the runbook of a file as it is, past no lint yet: for those who want to see all findings."""
    return read_runbook(read_document(path), str(path))


def load_folder(folder: Path) -> Mapping[str, Runbook]:
    """Give the sound runbooks of a folder by name; raises UsageError for no folder and for a name held twice."""
    if not folder.is_dir():
        raise UsageError(f"The folder {folder} does not exist.", "Name a folder that holds runbook files (*.yaml).")
    found: dict[str, Runbook] = {}
    # A source without a folder is a shipped one's.
    for path in sorted((folder if folder.parts else folder.absolute()).glob(f"*{_SUFFIX}")):
        runbook = load_file(path)
        if runbook.name in found:
            raise SettingsError(f"{path}: runbook is {runbook.name!r}, which {found[runbook.name].source} has too.")
        found[runbook.name] = runbook
    if not found:
        raise UsageError(f"The folder {folder} holds no runbook.", "Runbook files end in .yaml.")
    return found


def in_force(own: Path | None) -> Mapping[str, Runbook]:
    """Give the runbooks a service goes by: the shipped ones, and those of its own folder beside or in place of them."""
    shipped = {name: load_builtin(name) for name in builtin_names()}
    return {**shipped, **(load_folder(own) if own is not None else {})}


def found(folder: Path | None, own: Path | None) -> Mapping[str, Runbook]:
    """Give the runbooks of a folder; without one those in force, where `own` is the settings' folder."""
    return load_folder(folder) if folder is not None else in_force(own)


def one_of(books: Mapping[str, Runbook], name: str, folder: Path | None) -> Runbook:
    """Give one by name; raises UsageError where there is none, naming the folder that was looked in."""
    if name not in books:
        nowhere = f"The folder {folder} holds no" if folder is not None else "There is no"
        raise UsageError(f"{nowhere} runbook `{name}`.", _hint(name, tuple(sorted(books))))
    return books[name]


def folder_of(runbook: Runbook) -> Path:
    """Give the folder that the paths in a runbook are taken from: its own."""
    parent = Path(runbook.source).parent
    return parent if parent.parts else Path(str(files("runbooks")))


def sound(runbook: Runbook) -> Runbook:
    """Give the runbook back, or raise SettingsError with the first finding and the number of the others."""
    findings = lint(runbook)
    if findings:
        first, more = findings[0], len(findings) - 1
        rest = f" {more} more: `sluicegate runbooks validate` shows all." if more else ""
        raise SettingsError(str(first), f"{first.hint}{rest}")
    return runbook


def _hint(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"There are {', '.join(known)}."
