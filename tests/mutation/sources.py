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

    def with_marks(self) -> str:
        """Give the body of the library with every mark in it."""
        body = functions.body()
        for name, text in self.files.items():
            body = _replaced(body, text, self.marked[name])
        return DECLARATION + body

    def with_mutant(self, mutant: Mutant) -> str:
        """Give the body of the library with one change in it."""
        text = self.files[mutant.file]
        return _replaced(functions.body(), text, mutant.altered(text))


def _replaced(body: str, text: str, other: str) -> str:
    assert body.count(text) == 1, "a file of the library stands in it once, as it is on the disk"
    return body.replace(text, other)


def use(body: str, *, marked: bool = False) -> None:
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
    if marked:
        library = functions.library() + REGISTRATION
        patch.setattr(functions, "library", lambda: library)
    for module, name in _HOLDERS:
        if module in sys.modules:
            patch.setattr(sys.modules[module], name, functions.library())
