"""Read a snapshot's file: nothing is given out before all of it was checked (contract §7.2).

What was cut off, altered, or written by another version is refused as a whole, with the line where it shows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from sluicegate.errors import SnapshotRefused
from sluicegate.snapshot_file import LineKind
from sluicegate.snapshot_lines import Counts, Header, NotRight, check_correction, header_of

# A payload is bounded at admission; a longer line is no line of ours, and is not read into memory.
_LONGEST_LINE = 64 * 1024 * 1024
_ORDER = list(LineKind)
_KINDS = {kind.value: kind for kind in LineKind}
# Made once, and given text: json.loads would look for the encoding of every line.
_decode = json.JSONDecoder().decode
# How nearly all lines begin, so that their kind is known without parsing them.
_STARTS = {kind: f'{{"kind":"{kind.value}",'.encode() for kind in (LineKind.JOB, LineKind.REFUSAL)}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Content:
    """Hold what the whole file came to; `still` and `until_ms` as in snapshot_file.Written."""

    sha256: str
    still: bool
    until_ms: int
    counts: Counts


class SnapshotReader:
    """Open a snapshot and check all of it; then `jobs` and `refusals` can be walked. Raises SnapshotRefused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._superseded: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self._raw: BinaryIO = open(self._path, "rb")
        except OSError as error:
            raise SnapshotRefused(f"The snapshot {self._path} cannot be read: {error.strerror}.") from error
        try:
            self.header, self.content = self._check()
        except BaseException:
            self._raw.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    def rows(self) -> Iterator[tuple[LineKind, Row]]:
        """Give every job (as JOB) and refusal, each once, in the order of the file.

        Raises SnapshotRefused at the end if the file was changed since it was checked.
        """
        yield from self._rows(self.content.sha256)

    def lines(self) -> Iterator[str]:
        """Give the same as the lines that stand in the file, where a correction holds its job; raises as `rows`."""
        for _, _, line in self._standing(self.content.sha256):
            yield line.decode()

    def _rows(self, sha256: str) -> Iterator[tuple[LineKind, Row]]:
        for number, kind, line in self._standing(sha256):
            _, body = self._parse(number, line)
            yield (LineKind.JOB, body["row"]) if kind is LineKind.CORRECTION else (kind, body)

    def _standing(self, sha256: str) -> Iterator[tuple[int, LineKind, bytes]]:
        """Give the lines of jobs and refusals but those that a later line stands for."""
        digest = hashlib.sha256()
        for number, line in self._lines():
            kind = self._kind(number, line)
            if kind is LineKind.END:
                break
            digest.update(line)
            if self._stands(kind, number, line):
                yield number, kind, line
        if digest.hexdigest() != sha256:
            raise self._refused("was changed while it was read")

    def _kind(self, number: int, line: bytes) -> LineKind:
        for kind, start in _STARTS.items():
            if line.startswith(start):
                return kind
        return self._parse(number, line)[0]

    def _stands(self, kind: LineKind, number: int, line: bytes) -> bool:
        if kind is LineKind.JOB:
            return not self._superseded or self._parse(number, line)[1]["id"] not in self._superseded
        if kind is LineKind.CORRECTION:
            return self._parse(number, line)[1]["row"] is not None
        return kind is LineKind.REFUSAL

    def _check(self) -> tuple[Header, Content]:
        """Walk the whole file once, twice where jobs moved while it was written."""
        digest = hashlib.sha256()
        header: Header | None = None
        counts = Counts()
        end: Row = {}
        last, number = LineKind.HEADER, 0
        for number, line in self._lines():
            kind, body = self._parse(number, line)
            if (header is None) != (kind is LineKind.HEADER) or _ORDER.index(kind) < _ORDER.index(last) or end:
                raise self._refused(f"has a line `{kind}` where none belongs", number)
            try:
                if kind is LineKind.HEADER:
                    header = header_of(body)
                elif kind is LineKind.END:
                    end = body
                elif kind is LineKind.CORRECTION:
                    self._superseded.add(check_correction(body))
                else:
                    counts.add(kind, body)
            except NotRight as error:
                raise self._refused(str(error), number) from error
            last = kind
            if kind is not LineKind.END:
                digest.update(line)
        if header is None or not end:
            raise self._refused("is cut off: its last line is missing", number or None)
        if end.get("sha256") != digest.hexdigest():
            raise self._refused("was altered: its checksum is another")
        content = Content(digest.hexdigest(), end.get("still") is True, end.get("until_ms", 0), counts)
        if self._superseded:
            content = replace(content, counts=self._recounted(content.sha256))
        if (content.counts.total, content.counts.refusals) != (end.get("jobs"), end.get("refusals")):
            raise self._refused("does not hold as many jobs and refusals as it says")
        return header, content

    def _recounted(self, sha256: str) -> Counts:
        counts = Counts()
        for kind, row in self._rows(sha256):
            counts.add(kind, row)
        return counts

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Give the numbered lines from the start; what gzip finds wrong is refused here."""
        number = 0
        try:
            self._raw.seek(0)
            with gzip.GzipFile(fileobj=self._raw, mode="rb") as file:
                while line := file.readline(_LONGEST_LINE):
                    number += 1
                    if not line.endswith(b"\n"):
                        raise self._refused("is cut off or has a line that is too long", number)
                    yield number, line
        except EOFError as error:
            raise self._refused("is cut off", number + 1) from error
        except (OSError, zlib.error) as error:
            raise self._refused(f"is no gzip file or was altered: {error}", number + 1) from error

    def _parse(self, number: int, line: bytes) -> tuple[LineKind, dict[str, Any]]:
        try:
            body = cast("object", _decode(line.decode()))
            kind = _KINDS[body["kind"]] if isinstance(body, dict) else None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._refused("has a line that is none of a snapshot", number) from error
        if kind is None or not isinstance(body, dict):
            raise self._refused("has a line that is none of a snapshot", number)
        return kind, body

    def _refused(self, what: str, number: int | None = None) -> SnapshotRefused:
        where = f" (line {number})" if number else ""
        return SnapshotRefused(f"The snapshot {self._path} {what}{where}.", "Nothing was restored from it.")
