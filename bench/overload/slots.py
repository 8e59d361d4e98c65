"""One worker process whose provider is time that passes: `python -m bench.overload.slots URL QUEUE SLOTS`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from bench.overload.plan import FASTER
from sluicegate import logs
from sluicegate.job import Call, CallKind, Job
from sluicegate.settings import WorkerSettings
from sluicegate.store import Store
from sluicegate.worker import Worker

# 250 ms, faster; not more often than this, for it costs two calls a worker.
_SWEEP_MS = max(50, round(250 / FASTER))


async def serve(job: Job, timeout_s: float) -> Call:
    """Take as long as the job says, or as long as the worker lets it."""
    service_s = float(json.loads(job.payload)["service_s"])
    await asyncio.sleep(min(service_s, timeout_s))
    if service_s > timeout_s:
        return Call(CallKind.TIMEOUT, timeout_s)
    return Call(CallKind.OK, service_s, 200)


async def work(url: str, queue: str, slots: int) -> None:
    store = Store.connect(url, queue, timeout_s=10)
    worker = Worker(store, serve, WorkerSettings(max_inflight=slots, sweep_ms=_SWEEP_MS))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()
    store.close()


if __name__ == "__main__":
    logs.configure()
    asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
