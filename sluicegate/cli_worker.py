"""Parse `sluicegate worker …` and wire it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Annotated

import typer

from sluicegate import event_loop, logs
from sluicegate.console import Queue, RedisUrl, SettingsFile, command_line, settings_of
from sluicegate.provider_call import ProviderCall
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.worker import Worker

app = command_line(
    "Pull jobs and call the provider, within the gate and the deadlines.",
    "sluicegate worker run --redis-url redis://127.0.0.1:6379/0 --provider-url http://127.0.0.1:8080",
)


@app.callback()
def group() -> None:
    """Pull jobs and call the provider, within the gate and the deadlines."""


@app.command(epilog="Example: sluicegate worker run --settings sluicegate.yaml --worker-id mill-1 --max-inflight 4")
def run(
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    provider_url: Annotated[
        str | None, typer.Option("--provider-url", metavar="URL", help="The provider; overrides the settings.")
    ] = None,
    queue: Queue = None,
    worker_id: Annotated[
        str | None, typer.Option("--worker-id", metavar="NAME", help="Its name in logs; by default a random one.")
    ] = None,
    max_inflight: Annotated[
        int | None, typer.Option("--max-inflight", metavar="N", help="Jobs at once; overrides the settings.")
    ] = None,
) -> None:
    """Work until SIGTERM or Ctrl-C, which finish or release what is held; a second one ends every call at once.

    Events go to stdout as JSON lines; those that it can not take are lost, and counted. Redis may come and go.
    """
    flags = {"provider_url": provider_url, "worker.max_inflight": max_inflight}
    in_force = settings_of(settings, redis_url, queue, flags)
    logs.json_lines(logging.INFO, sys.stdout)
    event_loop.run(_work(in_force, worker_id))


async def _work(settings: Settings, worker_id: str | None) -> None:
    store = Store.of(settings)
    loop = asyncio.get_running_loop()
    try:
        async with ProviderCall(settings.provider_url) as call:
            worker = Worker(store, call, settings.worker, worker_id=worker_id, point=call.point_at)
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, worker.stop)
            await worker.run()
    finally:
        store.close()
