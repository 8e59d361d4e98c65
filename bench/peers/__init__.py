"""Which queues is this one measured against? A file each, with one class `Peer` that follows the protocol here.

A peer is measured with its defaults but for two things: results are off, and what is acknowledged is acknowledged after
the work. A peer that can't be imported or that fails ends in the results with its error, never silently.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """Hold one run of a peer's worker: jobs, wall seconds and the CPU seconds of its process."""

    jobs: int
    seconds: float
    cpu_seconds: float


class Peer(Protocol):
    """Enqueue and run no-op jobs of another queue on the server at `url`; anew in each round, on an empty server."""

    name: str
    version: str
    acknowledges: bool

    def __init__(self, url: str) -> None: ...

    def enqueue(self, n: int, payload: str) -> None:
        """Enqueue one after the other, as a synchronous caller does."""

    def enqueue_async(self, n: int, callers: int, payload: str) -> Sequence[float]:
        """Enqueue from so many asyncio tasks at once; gives each call's seconds. Raises NotImplementedError without."""

    def run_worker(self, n: int, payload: str, slots: int) -> WorkerRun:
        """Enqueue, start one worker process with so many slots, and measure from its first job to its last."""

    def pick_up(self, n: int) -> Sequence[float]:
        """Enqueue single jobs into an idle queue; gives the seconds from the call to the handler's start."""

    def close(self) -> None:
        """End every process and connection."""


@dataclass(frozen=True, slots=True)
class Found:
    """Pair a peer's module with its class, or with why there is none."""

    module: str
    peer: type[Peer] | None
    error: str = ""


def found() -> Iterator[Found]:
    """Give every peer there is a file for."""
    for module in pkgutil.iter_modules(__path__):
        try:
            yield Found(module.name, importlib.import_module(f"{__name__}.{module.name}").Peer)
        except (ImportError, AttributeError) as error:
            yield Found(module.name, None, repr(error))
