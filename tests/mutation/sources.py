"""Alter the library's source in memory: the files, and every process but the one that runs a test, keep theirs."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from sluicegate import functions
from tests.mutation.lua import tokens
from tests.mutation.marks import DECLARATION, REGISTRATION, Outline
from tests.mutation.mutants import Mutant, mutants_of

FOLDER = Path(functions.__file__).parent
# A name, with that of its table, before a bracket, in tokens put together with blanks.
_CALL = re.compile(r"((?:\w+ \. )?\w+) \(")
Function = tuple[str, str]
Place = tuple[str, str, int]
# Modules that read the source once, when they are imported, and under which name they keep it.
_HOLDERS = (("tests.contract.test_queue_machine", "SOURCE"), ("tests.contract.test_figures", "SOURCE"))


@dataclass(frozen=True)
class Sources:
    """Hold the library's files, the same with marks, and every mutant."""

    files: dict[str, str]
    marked: dict[str, str]
    mutants: tuple[Mutant, ...]
    # Of each mark, its place: (file, function, how many of the function stand before it).
    places: dict[int, Place] = field(default_factory=dict)
    # Of each function, a fingerprint of its tokens.
    digests: dict[Function, str] = field(default_factory=dict)
    # Of each function, the names that it calls.
    calls: dict[Function, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Sources:
        return cls.of({path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.lua"))})

    @classmethod
    def of(cls, files: dict[str, str]) -> Sources:
        numbers = count(1)
        marked: dict[str, str] = {}
        mutants: list[Mutant] = []
        places: dict[int, Place] = {}
        digests: dict[Function, str] = {}
        calls: dict[Function, frozenset[str]] = {}
        for name, text in files.items():
            found, outlined = mutants_of(name, text, numbers)
            marked[name] = outlined.marked(text)
            mutants += found
            places |= _places(name, outlined)
            texts = _texts(name, text, outlined)
            digests |= {key: hashlib.sha256(" ".join(each).encode()).hexdigest()[:16] for key, each in texts.items()}
            calls |= {key: frozenset(_CALL.findall(" ".join(each))) for key, each in texts.items()}
        return cls(files, marked, tuple(mutants), places, digests, calls)

    def reached_from(self, names: set[str]) -> dict[Function, int]:
        """Give the functions that have one of these names, and what they call, each with how many calls away it is."""
        reached: dict[Function, int] = {}
        asked, depth = {name.replace(".", " . ") for name in names}, 0
        while new := {key for key in self.calls if key[1].replace(".", " . ") in asked} - reached.keys():
            reached |= dict.fromkeys(new, depth)
            asked, depth = {call for key in new for call in self.calls[key]}, depth + 1
        return reached

    def marks_of(self, reached: Container[Function]) -> tuple[int, ...]:
        """Give all marks in some functions."""
        return tuple(mark for mark, (file, function, _) in self.places.items() if (file, function) in reached)

    def digest_of(self, mutant: Mutant) -> str:
        """Give the fingerprint of the function that a mutant is in."""
        return self.digests[mutant.file, mutant.function]

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


def _places(file: str, outlined: Outline) -> dict[int, Place]:
    met: Counter[str] = Counter()
    places = {}
    for mark, function in sorted(outlined.owners.items()):
        places[mark] = (file, function or "-", met[function])
        met[function] += 1
    return places


def _texts(file: str, text: str, outlined: Outline) -> dict[Function, list[str]]:
    """Give the text of each token by the function that it is in."""
    words: dict[Function, list[str]] = {}
    for token, function in zip(tokens(text), outlined.functions, strict=True):
        words.setdefault((file, function or "-"), []).append(token.text)
    return words


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
