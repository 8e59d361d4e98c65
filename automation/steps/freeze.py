"""freeze: the run's opening closed the gate; wait until every worker has confirmed it."""

from __future__ import annotations

import asyncio

from automation.turn import Done, Progress, Turn, Wait
from sluicegate.replies import WorkerView


async def freeze(turn: Turn) -> Progress:
    """Be done when every worker seen lately has confirmed the epoch, or its leases ran out (contract §7.1)."""
    seen_ms = turn.context.contract.timings.worker_seen_s * 1000
    opened_at_us = turn.history.run.started_at_ms * 1000
    workers = await asyncio.to_thread(turn.store.workers)
    lately = [worker for worker in workers if worker.seen_ms_ago <= seen_ms]
    waiting = [worker.worker_id for worker in lately if not _confirmed(worker, opened_at_us)]
    # A worker that vanished counts as long as its leases run.
    vanished = [worker.worker_id for worker in workers if worker.seen_ms_ago > seen_ms and worker.inflight]
    if waiting or vanished:
        return Wait(f"workers that have not confirmed: {', '.join(waiting + vanished)}")
    return Done(detail={"workers": {worker.worker_id: str(worker.epoch) for worker in lately}})


def _confirmed(worker: WorkerView, opened_at_us: int) -> bool:
    """Say whether a worker has confirmed the opening: epochs are µs of Redis TIME, so one of then is not older."""
    return worker.epoch >= opened_at_us
