"""One worker process whose jobs do nothing: `python -m bench.noop_worker URL SLOTS`.

It says `ready`, waits for a line on stdin, and works until it is told to stop. Its log goes to stderr as JSON, as a
worker's does; each job's start is a line on stdout where PICK_UP is set: the job and the monotonic clock in ns.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from sluicegate import logs
from sluicegate.job import Call, CallKind, Job
from sluicegate.settings import WorkerSettings
from sluicegate.store import Store
from sluicegate.worker import Worker

_TELLS = bool(os.environ.get("PICK_UP"))


async def nothing(job: Job, timeout_s: float) -> Call:
    del timeout_s
    if _TELLS:
        print(job.job_id, time.monotonic_ns(), flush=True)
    return Call(CallKind.OK, 0.0, 200)


async def work(url: str, slots: int) -> None:
    store = Store.connect(url, timeout_s=5)
    worker = Worker(store, nothing, WorkerSettings(max_inflight=slots))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()
    store.close()


if __name__ == "__main__":
    logs.configure()
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
