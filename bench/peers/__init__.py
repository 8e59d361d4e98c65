"""Which queues is this one measured against? A file each, with one class `Peer` that follows the protocol here.

Each runs in an environment of its own (`pins` has the versions; their dependencies contradict each other), so these
files import nothing of Sluicegate, and Sluicegate's bench imports none of them. `host` enqueues for a peer; its worker
is started by the peer's own command. A peer is measured with its defaults but for three things: results are off, its
worker is one process with as many slots as ours, and a job is acknowledged after its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

# In the environment of a host and of a worker.
URL = "BENCH_URL"
SLOTS = "BENCH_SLOTS"


class Peer(Protocol):
    """Enqueue no-op jobs on the server at BENCH_URL, and say how a worker is started and when all of them are done."""

    concurrent: bool
    """Whether its callers are coroutines, so that many of them can ask at once from one process."""

    worker: Sequence[str]
    """The command of one worker process with BENCH_SLOTS slots; its first word is looked up in the environment."""

    left: str
    """Lua that gives how many jobs are not acknowledged yet."""

    async def open(self) -> None:
        """Make what it needs on an empty server; called after each flush."""

    async def enqueue(self, payload: str) -> None:
        """Enqueue one job."""
