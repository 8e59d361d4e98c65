"""Check the audit log's chain: was an entry changed, taken out, put in, moved, or cut off at the end? Pure.

Each entry's hash is the SHA-1 of the hash before it and of its own fields, each name and value with its length in
bytes before it (functions/_audit.lua). Whoever can write to the server can compute a chain anew from any entry on; so
a number with its hash, kept elsewhere, is what proves the entries up to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_HASH, _NUMBER = "hash", "n"


class Fault(StrEnum):
    """Name what may be wrong with a chain."""

    ALTERED = "altered"  # an entry's fields, or those of the one before it, do not fit its hash
    MISSING = "missing"  # entries are not there, in the middle or before the first
    MISPLACED = "misplaced"  # an entry was put in, or stands behind a later one
    CUT_OFF = "cut_off"  # entries are not there at the end
    NOT_AS_NOTED = "not_as_noted"  # an entry's hash is another than the one that was kept elsewhere


@dataclass(frozen=True, slots=True)
class Break:
    """Say where a chain is broken, and how."""

    fault: Fault
    said: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold one entry: its fields in the order in which they were written, the hash last."""

    fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, flat: Iterable[str]) -> Entry:
        words = iter(flat)
        return cls(tuple(zip(words, words, strict=True)))

    @property
    def number(self) -> int | None:
        """Give its number, None where it has none."""
        text = self.body.get(_NUMBER, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 17 else None

    @property
    def hash(self) -> str:
        return self.body.get(_HASH, "")

    @property
    def body(self) -> dict[str, str]:
        return dict(self.fields)

    def hash_after(self, before: str) -> str:
        """Give the hash that belongs to these fields after an entry with that hash."""
        digest = hashlib.sha1(before.encode(), usedforsecurity=False)
        for word in (word for field in self.fields if field[0] != _HASH for word in field):
            raw = word.encode()
            digest.update(b"%d:%b" % (len(raw), raw))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Ends:
    """Hold a chain's two ends: number and hash of the last entry written, and of the last one that was trimmed away."""

    number: int
    hash: str
    base_number: int
    base_hash: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Ends:
        return cls(_number(body["n"]), str(body["hash"]), _number(body["base_n"]), str(body["base_hash"]))


@dataclass(frozen=True, slots=True)
class Noted:
    """Hold an entry's number and hash as they were kept elsewhere."""

    number: int
    hash: str

    @classmethod
    def read(cls, text: str) -> Noted:
        """Read `NUMBER:HASH`; raises ValueError on anything else."""
        number, colon, digest = text.strip().partition(":")
        if not (colon and number.isascii() and number.isdecimal() and len(digest) == 40):
            raise ValueError("not a number, a colon and a hash of 40 hex digits")
        return cls(int(number), digest.lower())


class Chain:
    """Follow a chain from its base, entry by entry, and say where it is broken."""

    def __init__(self, base_number: int, base_hash: str, noted: Noted | None = None) -> None:
        self.number, self.hash = base_number, base_hash
        self._noted = noted

    def follow(self, entries: Iterable[Entry]) -> Iterator[Break]:
        """Take the next entries, and give what is wrong with them."""
        for entry in entries:
            number, due = entry.number, self.number + 1
            if number is None or number < due:
                yield Break(Fault.MISPLACED, f"An entry numbered {number} stands where entry {due} was due.")
                continue
            if number > due:
                yield Break(Fault.MISSING, f"{_entries(due, number - 1)} not there.")
            elif entry.hash_after(self.hash) != entry.hash:
                yield Break(Fault.ALTERED, f"Entry {number} does not fit its hash: it, or the one before, was changed.")
            self.number, self.hash = number, entry.hash
            if self._noted is not None and self._noted.number == number:
                if self._noted.hash != entry.hash:
                    yield Break(Fault.NOT_AS_NOTED, f"Entry {number} has another hash than the one that was noted.")
                self._noted = None

    def end(self, ends: Ends) -> Iterator[Break]:
        """Compare where it ends with where it should, and give what is wrong."""
        if self.number < ends.number:
            yield Break(Fault.CUT_OFF, f"{_entries(self.number + 1, ends.number)} not there: the end was cut off.")
        elif (self.number, self.hash) != (ends.number, ends.hash):
            yield Break(Fault.ALTERED, f"The chain ends with entry {self.number}, and not as its head says.")
        if self._noted is not None:
            where = "trimmed away long ago" if self._noted.number <= ends.base_number else "not there"
            yield Break(Fault.NOT_AS_NOTED, f"Entry {self._noted.number}, which was noted, is {where}.")


def _entries(first: int, last: int) -> str:
    return f"Entry {first} is" if first == last else f"Entries {first} to {last} are"


def _number(text: object) -> int:
    try:
        return int(str(text))
    except ValueError:
        return 0
