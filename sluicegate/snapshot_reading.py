"""Read a snapshot's file: nothing is given out before all of it was checked (contract §7.2).

What was cut off, altered, or written by another version is refused as a whole, with the line where it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from sluicegate.errors import SnapshotRefused
from sluicegate.job import JobState
from sluicegate.snapshot_checked import Checked, CheckedJob, CheckedRefusal, checked
from sluicegate.snapshot_file import LineKind
from sluicegate.snapshot_lines import (
    Counts,
    Header,
    NotRight,
    check_correction,
    check_job,
    check_refusal,
    header_of,
)
from sluicegate.snapshot_records import Correction, JobLine, Refusal, lines_in
from sluicegate.snapshot_stream import Spoilt, Unended, WholeLines

_ORDER = list(LineKind)
_DELAYED = JobState.DELAYED.value
_KINDS = {kind.value: kind for kind in LineKind}
_decode = msgspec.json.Decoder().decode

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Content:
    """Hold what the whole file came to; `still` and `until_ms` as in snapshot_file.Written."""

    sha256: str
    still: bool
    until_ms: int
    counts: Counts


class SnapshotReader:
    """Open a snapshot and check all of it; then `rows` can be walked, more than once. Raises SnapshotRefused."""

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

    def rows(self) -> Iterator[list[JobLine | Refusal]]:
        """Give every job and refusal, each once, some at a time, in the order of the file.

        Raises SnapshotRefused at the end if the file was changed since it was checked.
        """
        yield from self._rows(self.content.sha256)

    def _rows(self, sha256: str) -> Iterator[list[JobLine | Refusal]]:
        parts = WholeLines(self._raw)
        number = 0
        for lines in self._parts(parts):
            try:
                found = lines_in(lines)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise self._refused("was changed while it was read", number + 1) from error
            number += lines.count(b"\n")
            yield [row for row in map(self._standing, found) if row is not None]
        if parts.sha256() != sha256:
            raise self._refused("was changed while it was read")

    def _standing(self, line: JobLine | Correction | Refusal) -> JobLine | Refusal | None:
        """Give what a line stands for: a job that a later line corrects is that line's."""
        if isinstance(line, Correction):
            return line.row
        if self._superseded and isinstance(line, JobLine) and line.id in self._superseded:
            return None
        return line

    def _check(self) -> tuple[Header, Content]:
        """Walk the whole file once, twice where jobs moved while it was written."""
        parts, walk = WholeLines(self._raw), _Walk()
        for lines in self._parts(parts):
            rows = checked(lines) if walk.in_rows else None
            if rows is None or not walk.takes(rows):
                for line in lines.splitlines(keepends=True):
                    self._check_line(walk, line)
        if walk.header is None or not walk.end:
            raise self._refused("is cut off: its last line is missing", walk.number or None)
        sha256 = parts.sha256()
        if walk.end.get("sha256") != sha256:
            raise self._refused("was altered: its checksum is another")
        self._superseded = walk.superseded
        content = Content(sha256, walk.end.get("still") is True, walk.end.get("until_ms", 0), walk.counts)
        if self._superseded:
            content = replace(content, counts=self._recounted(sha256))
        if (content.counts.total, content.counts.refusals) != (walk.end.get("jobs"), walk.end.get("refusals")):
            raise self._refused("does not hold as many jobs and refusals as it says")
        return walk.header, content

    def _check_line(self, walk: _Walk, line: bytes) -> None:
        walk.number += 1
        kind, body = self._parse(walk.number, line)
        if (
            (walk.header is None) != (kind is LineKind.HEADER)
            or _ORDER.index(kind) < _ORDER.index(walk.last)
            or walk.end
        ):
            raise self._refused(f"has a line `{kind}` where none belongs", walk.number)
        try:
            walk.take(kind, body)
            if kind not in (LineKind.HEADER, LineKind.END):
                lines_in(line)
        except NotRight as error:
            raise self._refused(str(error), walk.number) from error
        except msgspec.MsgspecError as error:
            raise self._refused("has a line that is none of a snapshot", walk.number) from error

    def _recounted(self, sha256: str) -> Counts:
        counts = Counts()
        for rows in self._rows(sha256):
            jobs = [row.record for row in rows if isinstance(row, JobLine)]
            counts.add((job["state"], job["class"], job.get("cost", "-")) for job in jobs)
            counts.refusals += len(rows) - len(jobs)
        return counts

    def _parts(self, parts: WholeLines) -> Iterator[bytes]:
        """Give whole lines from the start, many at a time; what gzip finds wrong is refused here."""
        number = 0
        try:
            for lines in parts:
                yield lines
                number += lines.count(b"\n")
        except EOFError as error:
            raise self._refused("is cut off", number + 1) from error
        except Unended as error:
            raise self._refused("is cut off or has a line that is too long", number + 1) from error
        except (OSError, Spoilt) as error:
            raise self._refused(f"is no gzip file or was altered: {error}", number + 1) from error

    def _parse(self, number: int, line: bytes) -> tuple[LineKind, dict[str, Any]]:
        try:
            body = _decode(line)
            kind = _KINDS[body["kind"]] if isinstance(body, dict) else None
        except (msgspec.MsgspecError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._refused("has a line that is none of a snapshot", number) from error
        if kind is None:
            raise self._refused("has a line that is none of a snapshot", number)
        return kind, body

    def _refused(self, what: str, number: int | None = None) -> SnapshotRefused:
        where = f" (line {number})" if number else ""
        return SnapshotRefused(f"The snapshot {self._path} {what}{where}.", "Nothing was restored from it.")


class _Walk:
    """Hold what the lines came to so far."""

    def __init__(self) -> None:
        self.number = 0
        self.header: Header | None = None
        self.end: Row = {}
        self.last = LineKind.HEADER
        self.counts = Counts()
        self.superseded: set[str] = set()

    @property
    def in_rows(self) -> bool:
        return self.header is not None and not self.end

    def takes(self, rows: list[Checked]) -> bool:
        """Count lines that are right, unless one is not of the kind that may follow; then each is looked at."""
        kinds = set(map(type, rows))
        if kinds == {CheckedRefusal}:
            self.counts.refusals += len(rows)
            self.last = LineKind.REFUSAL
        elif kinds == {CheckedJob} and self.last in (LineKind.HEADER, LineKind.JOB):
            jobs = [row.record for row in rows if isinstance(row, CheckedJob)]
            if any(job.state == _DELAYED and not job.ready_at for job in jobs):
                return False
            self.counts.add((job.state, job.job_class, job.cost) for job in jobs)
            self.last = LineKind.JOB
        else:
            return False
        self.number += len(rows)
        return True

    def take(self, kind: LineKind, body: Row) -> None:
        """Check one line and count it; raises NotRight."""
        if kind is LineKind.HEADER:
            self.header = header_of(body)
        elif kind is LineKind.END:
            self.end = body
        elif kind is LineKind.CORRECTION:
            self.superseded.add(check_correction(body))
        elif kind is LineKind.REFUSAL:
            check_refusal(body)
            self.counts.refusals += 1
        else:
            self.counts.add([check_job(body)])
        self.last = kind
