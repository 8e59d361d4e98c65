"""Tell the bench that a handler has started: the same 8 bytes from every queue's worker, ours and the peers'.

Imported in the environments of the peers as well, so it needs nothing but the standard library.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path

# Names the file in a worker's environment.
VARIABLE = "BENCH_TICKS"
SIZE = 8
_descriptors: dict[str, int] = {}


def tick() -> None:
    """Append the monotonic clock in ns: one write, whole from any thread and any forked child."""
    path = os.environ[VARIABLE]
    if path not in _descriptors:
        _descriptors[path] = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(_descriptors[path], struct.pack("q", time.monotonic_ns()))


def count(path: Path) -> int:
    """Give how many handlers have started."""
    return path.stat().st_size // SIZE


def read(path: Path) -> Sequence[int]:
    """Give the instants in ns, in the order in which they were written."""
    return [instant for (instant,) in struct.iter_unpack("q", path.read_bytes())]
