"""Give the lines of a gzip file many at a time, with the checksum of all but the last (contract §7.2).

A thread reads ahead: neither ISA-L nor the checksum holds Python's lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, cast

from isal import igzip, isal_zlib

# A payload is bounded at admission; a longer line is no line of ours, and is not read into memory.
_LONGEST_LINE = 64 * 1024 * 1024
_READ_BYTES = 1 << 17
# How every gzip file begins (RFC 1952); of a shorter one ISA-L only says that it is cut off.
_MAGIC = b"\x1f\x8b"
# ISA-L's types leave this open, and the next.
_gzip_file: Any = igzip.IGzipFile
# What ISA-L finds wrong with the data.
Spoilt = cast("type[Exception]", isal_zlib.error)


class Unended(Exception):
    """Say that the file ends within a line, or that one is too long."""


class WholeLines:
    """Give a file's whole lines, many at a time; a thread reads ahead, and adds to the checksum what was given.

    Raises EOFError where the file is cut off, Unended, and OSError or Spoilt where it is no gzip file or was altered.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._digest = hashlib.sha256()
        self._rest = b""
        self._before = b""

    def __iter__(self) -> Iterator[bytes]:
        self._raw.seek(0)
        beginning = self._raw.read(len(_MAGIC))
        if beginning and beginning != _MAGIC:
            raise OSError(f"Not a gzipped file ({beginning!r})")
        self._raw.seek(0)
        with ThreadPoolExecutor(1, "snapshot") as thread, _gzip_file(fileobj=self._raw, mode="rb") as file:
            coming = thread.submit(self._next, file)
            while lines := coming.result():
                coming = thread.submit(self._next, file)
                yield lines

    def _next(self, file: BinaryIO) -> bytes:
        found = [self._rest]
        size = len(self._rest)
        while True:
            read = file.read(_READ_BYTES)
            end = read.rfind(b"\n") + 1
            size += len(read)
            if end or not read or size > _LONGEST_LINE:
                break
            found.append(read)
        if not end and (size > _LONGEST_LINE or any(found)):
            raise Unended
        lines, self._rest = b"".join([*found, read[:end]]), read[end:]
        if lines:
            self._digest.update(self._before)
            self._before = lines
        return lines

    def sha256(self) -> str:
        """Give the checksum of all lines but the last, once all were given."""
        self._digest.update(self._before[: self._before.rstrip(b"\n").rfind(b"\n") + 1])
        self._before = b""
        return self._digest.hexdigest()
