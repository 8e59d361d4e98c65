"""Deliver what runs say to people, from the outbox: a run never waits for it, and a repeat carries the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import structlog

from automation.looping import Loop
from automation.metrics import AutomationMetrics
from runbooks.verbs.hook import masked
from sluicegate.replies import Message
from sluicegate.settings import Settings
from sluicegate.store import Store

log = structlog.get_logger(__name__)

_EVERY_S = 1.0
_CALL_TIMEOUT_S = 5.0
_GIVEN_UP_AFTER_MS = 3_600_000
_WEBHOOK = "webhook:"


class Outbox:
    """Post messages to the addresses that the settings name; the process that leads does it, so that one does.

    A message that cannot be delivered is tried again for an hour; it holds up none of the others.
    """

    def __init__(self, store: Store, settings: Settings, leads: Callable[[], bool], metrics: AutomationMetrics) -> None:
        self._store = store
        self._settings = settings
        self._leads = leads
        self._metrics = metrics
        self._loop = Loop("outbox", _EVERY_S, self.look)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def look(self) -> None:
        """Try each message once."""
        if not self._leads():
            return
        messages = await asyncio.to_thread(self._store.outbox)
        if messages:
            now_ms = await asyncio.to_thread(self._store.server_time_ms)
            await asyncio.gather(*(self._settle(message, now_ms) for message in messages))

    async def _settle(self, message: Message, now_ms: int) -> None:
        outcome = await self._deliver(message)
        if outcome == "failed" and now_ms - message.at_ms < _GIVEN_UP_AFTER_MS:
            return
        self._metrics.notifications.labels(outcome).inc()
        if outcome != "delivered":
            log.error("notification_given_up", run=message.run, to=message.to, text=message.text)
        await asyncio.to_thread(self._store.outbox_done, message.message_id)

    async def _deliver(self, message: Message) -> str:
        """Give delivered, failed (it may be tried again) or refused (it never will be taken)."""
        said = {"run": message.run, "runbook": message.runbook, "queue": self._store.queue, "text": message.text}
        if not message.to.startswith(_WEBHOOK):
            log.warning("notification", **said)
            return "delivered"
        url = self._settings.automation.urls.get(message.to.removeprefix(_WEBHOOK))
        if url is None:
            return "refused"
        headers = {"Idempotency-Key": f"{self._store.queue}/{message.message_id}"}
        try:
            async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
                answer = await client.post(url, json={**said, "at_ms": message.at_ms}, headers=headers)
        except httpx.HTTPError as error:
            log.warning("notification_failed", to=masked(url), error=type(error).__name__)
            return "failed"
        if answer.is_success:
            return "delivered"
        log.warning("notification_failed", to=masked(url), status=answer.status_code)
        return "failed" if answer.status_code >= 500 or answer.status_code in (408, 429) else "refused"
