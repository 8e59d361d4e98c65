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
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        runbook = load_file(path)
        if runbook.name in found:
            raise SettingsError(f"{path}: runbook is {runbook.name!r}, which {found[runbook.name].source} has too.")
        found[runbook.name] = runbook
    if not found:
        raise UsageError(f"The folder {folder} holds no runbook.", "Runbook files end in .yaml.")
    return found


def load_all(folder: Path | None) -> Mapping[str, Runbook]:
    """Give the shipped runbooks, or those of a folder instead."""
    return load_folder(folder) if folder is not None else {name: load_builtin(name) for name in builtin_names()}


def load(name: str, folder: Path | None) -> Runbook:
    """Give one runbook by name, shipped or from a folder."""
    if folder is None:
        return load_builtin(name)
    found = load_folder(folder)
    if name not in found:
        raise UsageError(f"The folder {folder} holds no runbook `{name}`.", _hint(name, tuple(found)))
    return found[name]


def folder_of(runbook: Runbook, folder: Path | None) -> Path:
    """Give the folder that the paths in a runbook are taken from: its own."""
    return Path(str(files("runbooks"))) if folder is None else Path(runbook.source).parent


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
