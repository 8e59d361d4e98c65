"""Write a snapshot's file: JSON lines in gzip, a header first, a checksum last, in place when whole (contract §7.2).

gzip, because on a host that is being rebuilt `zcat FILE | head` works before anything is installed. At zlib's fastest
level it costs less than half of what reading a job from Redis costs, and leaves about a sixth of the bytes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sluicegate.errors import SnapshotBusy

# 1 was never released. A reader takes no format but its own: what it does not know it must not leave out.
FORMAT = 2
_LEVEL = 1
# Made once: json.dumps would make an encoder a line.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_BUFFER = 1 << 17


class LineKind(StrEnum):
    """Name what a line of the file is; they come in this order."""

    HEADER = "sluicegate-snapshot"
    JOB = "job"
    CORRECTION = "correction"  # a job that moved while it was written down: it stands for every earlier line of its id
    REFUSAL = "refusal"
    END = "end"


@dataclass(frozen=True, slots=True)
class Written:
    """Say what a snapshot holds.

    sha256 is over all lines but the last, uncompressed. still: all of it is of one instant, `until_ms`; without it each
    job is as it was at some time from `at_ms` to `until_ms` (ms of Redis TIME).
    """

    sha256: str
    jobs: int
    refusals: int
    still: bool
    at_ms: int
    until_ms: int
    drain_state: str


class SnapshotWriter:
    """Write lines into a hidden file beside the wanted one, and put it in place when it is finished.

    Only its owner can read it: it holds payloads. A writer that is killed leaves the hidden file, which the next one of
    the same name takes over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        self._digest = hashlib.sha256()
        self._lines = bytearray()

    def __enter__(self) -> Self:
        """Open the hidden file; raises OSError, and SnapshotBusy while another process writes it."""
        if self._path.exists() and not self._path.is_file():
            # It would be replaced: /dev/null, of all files.
            raise FileExistsError(errno.EEXIST, "it is there, and no plain file")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._raw = os.fdopen(descriptor, "wb", buffering=1 << 18)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._raw.close()
            raise SnapshotBusy(f"Another process is writing the snapshot {self._path}.") from error
        os.ftruncate(descriptor, 0)
        # Neither a name nor a time in the gzip header: the same lines are the same bytes.
        self._file = gzip.GzipFile("", "wb", _LEVEL, self._raw, mtime=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        self._partial.unlink(missing_ok=True)
        # What is still buffered can't be written where the disk is full, and need not be.
        with contextlib.suppress(OSError, ValueError):
            self._raw.close()

    def write(self, kind: LineKind, body: Mapping[str, Any]) -> None:
        """Write one line."""
        self._add(line_of(kind, body))

    def write_encoded(self, kind: LineKind, body: str) -> None:
        """Write one line whose body is a JSON object already."""
        self._add(f'{{"kind":"{kind.value}",{body[1:]}\n'.encode())

    def _add(self, line: bytes) -> None:
        self._lines += line
        if len(self._lines) >= _BUFFER:
            self._pass_on()

    def _pass_on(self) -> None:
        self._digest.update(self._lines)
        self._file.write(self._lines)
        self._lines.clear()

    def finish(self, body: Mapping[str, Any]) -> str:
        """Write the last line down to the disk and put the file in place; gives the checksum."""
        self._pass_on()
        sha256 = self._digest.hexdigest()
        self._file.write(line_of(LineKind.END, {**body, "sha256": sha256}))
        self._file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._partial.replace(self._path)
        _keep_name(self._path.parent)
        self._raw.close()
        return sha256


def line_of(kind: LineKind, body: Mapping[str, Any]) -> bytes:
    """Give a line as it stands in the file."""
    return (_encode({"kind": kind.value, **body}) + "\n").encode()


def _keep_name(folder: Path) -> None:
    """Force the folder's entry to the disk, or the name could be lost with a machine that dies now."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
