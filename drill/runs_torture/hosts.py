"""Host many queues in one process: their automation services (one replica of each), or their workers.

Alone each would be a process of its own; thirty of them are more than a small machine carries.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

from automation.service import Automation
from sluicegate.provider_call import ProviderCall
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.worker import Worker


async def host_automation(all_settings: Sequence[Settings]) -> None:
    """Serve one automation service a queue until the first of them is told to end."""
    await _until_one_ends([Automation(settings).serve() for settings in all_settings])


async def host_workers(all_settings: Sequence[Settings], name: str) -> None:
    """Work on every queue until SIGTERM."""
    await _until_one_ends([_work(settings, f"{name}-{settings.queue}") for settings in all_settings])


async def _work(settings: Settings, worker_id: str) -> None:
    store = Store.of(settings)
    try:
        async with ProviderCall(settings.provider_url) as call:
            worker = Worker(store, call, settings.worker, worker_id=worker_id)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
            await worker.run()
    finally:
        store.close()


async def _until_one_ends(parts: Sequence[Coroutine[Any, Any, None]]) -> None:
    tasks = [asyncio.ensure_future(part) for part in parts]
    done, going = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in going:
        task.cancel()
    await asyncio.gather(*going, return_exceptions=True)
    for task in done:
        task.result()
