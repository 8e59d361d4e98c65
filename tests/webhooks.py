"""Alertmanager's webhook over real HTTP for tests: recorded payloads, and the service's pages on a free port."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from automation.access import Access
from automation.api import create_app
from automation.page.feed import Feed
from automation.page.routes import Page
from automation.webhook import WEBHOOK_PATH
from sluicegate.listening import listen
from sluicegate.service_settings import AutomationSettings
from sluicegate.web.serving import FollowingServer, quiet_config
from tests.automation_parts import RECOVERY, RUNBOOKS, Parts, quick

PAYLOADS = Path(__file__).parent / "payloads"
NAMES = sorted(path.stem for path in PAYLOADS.glob("*.json"))


def recorded(name: str, change: Callable[[dict[str, Any]], None] | None = None) -> bytes:
    """Give a recorded payload whose alerts ask for the shipped runbook on the queue under test."""
    (path,) = PAYLOADS.glob(f"{name}*.json")
    body = json.loads(path.read_text(encoding="utf-8"))
    for alert in body["alerts"]:
        alert["labels"] |= {"queue": "default", "runbook": RECOVERY.name}
        if change is not None:
            change(alert)
    return json.dumps(body).encode()


@asynccontextmanager
async def served(
    parts: Parts, token: str | None = None, trusting: ssl.SSLContext | None = None, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the parts' HTTP on a free port of this loop, with these settings of the service.

    `trusting` is the client's side of TLS; its certificate may be in it.
    """
    own = AutomationSettings(token=token, **settings)
    access = Access(own)
    feed = Feed(parts.store, own.page)
    page = Page(parts.store, feed, RUNBOOKS, parts.settings)
    app = create_app(parts.store, parts.episodes, RUNBOOKS, parts.metrics, access, page)
    server = FollowingServer(quiet_config(app, 1), access.web, access.renewals)
    bound = listen("127.0.0.1", 0, "the test's service")
    await feed.start()
    task = asyncio.create_task(server.serve(sockets=[bound]))
    scheme = "http" if access.web is None or access.web.context is None else "https"
    try:
        await parts.until(server.serving.is_set, "the HTTP server")
        url = f"{scheme}://127.0.0.1:{bound.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=10, verify=trusting or True) as client:
            yield client
    finally:
        await feed.stop()
        server.should_exit = True
        await task
        bound.close()
        access.close()


async def post(client: httpx.AsyncClient, body: bytes, path: str = WEBHOOK_PATH) -> httpx.Response:
    return await client.post(path, content=body, headers={"Content-Type": "application/json"})


def still(url: str, folder: Path, **changes: Any) -> Parts:
    """Give the parts with nothing that acts by itself: what happens comes from the posts."""
    return Parts(url, quick(folder, **changes), controller=False, executor=False, workers=0)


def drained(parts: Parts) -> None:
    """Let the library itself put the gate into drain, as the controller would."""
    _, fence = parts.store.lead("by-hand")
    epoch = parts.store.tick(fence).gate.epoch
    answer = parts.store.move_gate(
        action="drain", reason="provider_or_queue_age", exit_ok=False, epoch=epoch, fence=fence, figures="{}"
    )
    assert answer.drain_state == "drain"


def fire(address: str) -> None:
    """Give a real Alertmanager an alert that asks for a run."""
    labels = {"alertname": "QueueAgeHigh", "queue": "default", "runbook": RECOVERY.name}
    httpx.post(f"http://{address}/api/v2/alerts", json=[{"labels": labels}], trust_env=False).raise_for_status()
