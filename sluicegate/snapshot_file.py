"""Write a snapshot's file: JSON lines in gzip, a header first, a checksum last, in place when whole (contract §7.2).

gzip, because on a host that is being rebuilt `zcat FILE | head` works before anything is installed. ISA-L makes it in
less than a third of zlib's time, in a thread of its own: neither it nor the checksum holds Python's lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec
from isal import isal_zlib

from sluicegate.errors import SnapshotBusy
from sluicegate.snapshot_records import Correction, JobLine, Refusal

# 1 and 2 were never released. A reader takes no format but its own: what it does not know it must not leave out.
FORMAT = 3
_LEVEL = 2
# gzip's header and checksum round the deflated data, with neither a name nor a time: the same lines are the same bytes.
_GZIP = 31
_encoder = msgspec.json.Encoder()
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
    job is as it was at some time from `at_ms` to `until_ms` (ms of Redis TIME). left_out: ids of damaged records.
    half_restored: a restore was not complete, and what it had not put back is not there.
    """

    sha256: str
    jobs: int
    refusals: int
    still: bool
    at_ms: int
    until_ms: int
    drain_state: str
    left_out: tuple[str, ...] = ()
    half_restored: bool = False


class SnapshotWriter:
    """Write lines into a hidden file beside the wanted one, and put it in place when it is finished.

    Only its owner can read it: it holds payloads. A writer that is killed leaves the hidden file, which the next one of
    the same name takes over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.parent / f".{path.name}.partial"  # with_name() takes no path without a name, such as "."
        self._digest = hashlib.sha256()
        self._lines = bytearray()
        self._thread = ThreadPoolExecutor(1, "snapshot")
        self._passing: Future[None] | None = None

    def __enter__(self) -> Self:
        """Open the hidden file; raises OSError, and SnapshotBusy while another process writes it."""
        if self._path.exists() and not self._path.is_file():
            # It would be replaced: /dev/null, of all files.
            raise FileExistsError(errno.EEXIST, "it is there, and no plain file")
        self._raw = self._own_file()
        os.ftruncate(self._raw.fileno(), 0)
        self._gzip = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP)
        return self

    def _own_file(self) -> BinaryIO:
        while True:
            descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            raw = os.fdopen(descriptor, "wb", buffering=1 << 18)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raw.close()
                raise SnapshotBusy(f"Another process is writing the snapshot {self._path}.") from error
            if _is_named(descriptor, self._partial):
                return raw
            # Whoever wrote it has put it in place since it was opened here: it is a whole snapshot.
            raw.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        if kind is None:
            return
        self._partial.unlink(missing_ok=True)
        # What is still buffered can't be written where the disk is full, and need not be.
        with contextlib.suppress(OSError, ValueError):
            self._raw.close()

    def write(self, kind: LineKind, body: Mapping[str, Any]) -> None:
        """Write one line."""
        self.write_lines(line_of(kind, body))

    def write_lines(self, lines: bytes) -> None:
        """Write whole lines, as `encoded` gives them."""
        self._lines += lines
        if len(self._lines) >= _BUFFER:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give what there is to the thread, once it has done with what it got before; raises its OSError."""
        self._passed_on()
        lines, self._lines = self._lines, bytearray()
        self._passing = self._thread.submit(self._compress, lines)

    def _passed_on(self) -> None:
        if self._passing is not None:
            self._passing.result()

    def _compress(self, lines: bytearray) -> None:
        self._digest.update(lines)
        self._raw.write(self._gzip.compress(lines))

    def finish(self, body: Mapping[str, Any]) -> str:
        """Write the last line down to the disk and put the file in place; gives the checksum."""
        self._pass_on()
        self._passed_on()
        sha256 = self._digest.hexdigest()
        self._raw.write(self._gzip.compress(line_of(LineKind.END, {**body, "sha256": sha256})))
        self._raw.write(self._gzip.flush())
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._partial.replace(self._path)
        _keep_name(self._path.parent)
        self._raw.close()
        return sha256


def encoded(lines: Sequence[JobLine | Correction | Refusal]) -> bytes:
    """Give a line for each as it stands in the file; raises UnicodeEncodeError where one holds what is no text."""
    return _encoder.encode_lines(lines)


def line_of(kind: LineKind, body: Mapping[str, Any]) -> bytes:
    """Give a line as it stands in the file."""
    return _encoder.encode({"kind": kind.value, **body}) + b"\n"


def _is_named(descriptor: int, path: Path) -> bool:
    """Say whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _keep_name(folder: Path) -> None:
    """Force the folder's entry to the disk, or the name could be lost with a machine that dies now."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
