"""Do a job's work in a thread: for code that waits by itself, such as requests or a vendor's client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sluicegate.job import Call, Job

# Does a job's work within the seconds it is given, and says how the call ended.
Work = Callable[[Job, float], Call]


class ThreadHandler:
    """Be a handler that runs blocking work in a thread, so that leases are renewed and the gate is seen meanwhile.

    Nothing can stop a thread: the work must keep its time itself (`timeout=` of its client). Work that does not keeps
    its slot until it ends; its lease is renewed no more once its time is up, and its late word counts as long as nobody
    else has settled the job.
    """

    def __init__(self, work: Work) -> None:
        self._work = work

    async def __call__(self, job: Job, timeout_s: float) -> Call:
        """Run the work in the loop's own executor, in which a worker has a thread for each of its jobs."""
        running = asyncio.get_running_loop().run_in_executor(None, self._work, job, timeout_s)
        while not running.done():
            try:
                await asyncio.shield(running)
            except asyncio.CancelledError:
                if running.cancelled():
                    raise
        return running.result()
