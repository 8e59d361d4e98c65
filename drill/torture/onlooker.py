"""Read the gate and the size of the server's file all the time, and keep both."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from drill.effects import LineLog
from sluicegate.errors import StoreError
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry

_LOOKS_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class FileSize:
    """Hold how long a file was at one instant (monotonic s)."""

    at: float
    path: Path
    size: int


class Onlooker:
    """Look at the gate ten times a second from a thread of its own, as any client could, and write what it reads.

    Its store lives through every restart of the server, so it knows the highest epoch that it has seen.
    """

    def __init__(self, store: Store, log: Path, data: Path) -> None:
        self._store = store
        self._log = LineLog(log)
        self._data = data
        self._sizes: list[FileSize] = []
        self._latest: Telemetry | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="onlooker", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; safe twice and before start."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def latest(self) -> Telemetry | None:
        """Return the latest figures, None where the last look got no answer."""
        return self._latest

    def size_before(self, instant: float) -> FileSize | None:
        """Return how long the newest append-only file was at an instant; None where it was not there yet."""
        newest = newest_file(self._data)
        known = (seen for seen in reversed(self._sizes) if seen.at <= instant and seen.path == newest)
        return next(known, None)

    def _run(self) -> None:
        while not self._stopping.wait(_LOOKS_EVERY_S):
            self._measure()
            self._look()

    def _measure(self) -> None:
        try:
            path = newest_file(self._data)
            if path is not None:
                self._sizes.append(FileSize(time.monotonic(), path, path.stat().st_size))
        except FileNotFoundError:
            return  # the server has just written its file anew under another name

    def _look(self) -> None:
        try:
            seen: Telemetry | None = self._store.observe()
        except StoreError:
            seen = None
        self._latest = seen
        gate = seen.gate if seen is not None else None
        line = {
            "at": time.time(),
            "drain_state": gate.drain_state if gate is not None else "",
            "pin": (gate.pin or "") if gate is not None else "",
            "epoch": str(gate.epoch) if gate is not None else "",
            "ready": seen.ready if seen is not None else 0,
            "unknown": seen.unknown if seen is not None else 0,
        }
        self._log.append(json.dumps(line, separators=(",", ":")) + "\n")


def newest_file(data: Path) -> Path | None:
    """Return the append-only file that the server writes to now, None without one."""
    found: Sequence[Path] = sorted(
        data.glob("appendonlydir/*.incr.aof"), key=lambda path: (path.stat().st_mtime_ns, path.name)
    )
    return found[-1] if found else None
