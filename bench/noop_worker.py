"""One worker process whose jobs do nothing but tell that they have started: `python -m bench.noop_worker URL SLOTS`.

Its log goes to stderr as JSON, as a worker's does.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from bench.ticks import tick
from sluicegate import event_loop, logs
from sluicegate.job import Call, CallKind, Job
from sluicegate.settings import WorkerSettings
from sluicegate.store import Store
from sluicegate.worker import Worker


async def nothing(job: Job, timeout_s: float) -> Call:
    del job, timeout_s
    tick()
    return Call(CallKind.OK, 0.0, 200)


async def work(url: str, slots: int) -> None:
    store = Store.connect(url, timeout_s=5)
    worker = Worker(store, nothing, WorkerSettings(max_inflight=slots))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()
    store.close()


if __name__ == "__main__":
    logs.configure()
    event_loop.run(work(sys.argv[1], int(sys.argv[2])))
