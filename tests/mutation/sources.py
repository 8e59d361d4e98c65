"""Alter the library's source in memory: the files, and every process but the one that runs a test, keep theirs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from sluicegate import functions
from tests.mutation.marks import DECLARATION, REGISTRATION
from tests.mutation.mutants import Mutant, mutants_of

FOLDER = Path(functions.__file__).parent
# Modules that read the source once, when they are imported, and under which name they keep it.
_HOLDERS = (("tests.contract.test_queue_machine", "SOURCE"),)


@dataclass(frozen=True)
class Sources:
    """Hold the library's files, the same with marks, and every mutant."""

    files: dict[str, str]
    marked: dict[str, str]
    mutants: tuple[Mutant, ...]

    @classmethod
    def read(cls) -> Sources:
        numbers = count(1)
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.lua"))}
        marked: dict[str, str] = {}
        mutants: list[Mutant] = []
        for name, text in files.items():
            found, outlined = mutants_of(name, text, numbers)
            marked[name] = outlined.marked(text)
            mutants += found
        return cls(files, marked, tuple(mutants))

    def marked_library(self) -> str:
        """Give the library with every mark in it.

        It stands in a function of its own: the marks' table would be one local too many beside the library's, of which
        Lua allows 200.
        """
        header, _, rest = functions.library().partition("\n")
        for name, text in self.files.items():
            rest = _replaced(rest, text, self.marked[name])
        return f"{header}\n{DECLARATION} (function() {rest}\nend)()\n{REGISTRATION}"

    def with_mutant(self, mutant: Mutant) -> str:
        """Give the body of the library with one change in it."""
        text = self.files[mutant.file]
        return _replaced(functions.body(), text, mutant.altered(text))


def _replaced(body: str, text: str, other: str) -> str:
    assert body.count(text) == 1, "a file of the library stands in it once, as it is on the disk"
    return body.replace(text, other)


def use(body: str) -> None:
    """Let this process load another body from now on; there is no way back, so only a process that ends soon may."""
    patch = pytest.MonkeyPatch()
    patch.setattr(functions, "body", lambda: body)
    for cached in (
        functions.command_names,
        functions.read_only_names,
        functions.hot_names,
        functions.library,
        functions.script,
        functions.reading_name,
    ):
        cached.cache_clear()
    _tell_holders(patch)


def use_library(library: str) -> None:
    """Let this process load another library; what runs without one stays as it is."""
    patch = pytest.MonkeyPatch()
    patch.setattr(functions, "library", lambda: library)
    _tell_holders(patch)


def _tell_holders(patch: pytest.MonkeyPatch) -> None:
    for module, name in _HOLDERS:
        if module in sys.modules:
            patch.setattr(sys.modules[module], name, functions.library())
