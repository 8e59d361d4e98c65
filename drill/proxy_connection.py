"""One client's connection through the fault proxy, request after request."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import h11

from drill.faults import Plan, Stream
from drill.toxics import Toxic, plan_request
from drill.wire import Message, Wire, forwarded_request, forwarded_response


@dataclass(frozen=True)
class Door:
    """Hold what a connection asks its proxy for, anew at every request: where to go and what goes wrong there."""

    upstream: Callable[[], tuple[str, int]]
    toxics: Callable[[], tuple[Toxic, ...]]
    released: Callable[[str], asyncio.Event]
    rng: random.Random


class ProxyConnection:
    """Answer one client's requests; the upstream connection is kept between them."""

    def __init__(self, client: Wire, door: Door) -> None:
        self._client = client
        self._door = door
        self._upstream: Wire | None = None

    async def run(self) -> None:
        """Serve until either side closes or a fault breaks the connection.

        A connection that breaks on one side is closed on the other, as it would be without a proxy.
        """
        with suppress(OSError):
            try:
                while await self._serve_one() and self._client.reuse():
                    pass
            except h11.RemoteProtocolError as error:
                await self._refuse(error)
            finally:
                self._client.close()
                self._drop_upstream()

    async def _serve_one(self) -> bool:
        request = await self._client.receive()
        if request is None:
            return False
        plan, breaker = plan_request(self._door.toxics(), self._door.rng)
        await asyncio.sleep(plan.request_delay_s)
        if plan.breaks(Stream.UPSTREAM):
            return await self._break(plan, breaker)
        answer = injected_answer(plan) if plan.status is not None else await self._ask_upstream(request)
        if answer is None:
            return False
        await asyncio.sleep(plan.answer_delay_s)
        if plan.breaks(Stream.DOWNSTREAM):
            return await self._break(plan, breaker)
        await self._client.send(answer)
        return True

    async def _ask_upstream(self, request: Message) -> Message | None:
        """Return the provider's answer, None when there was none: the proxy adds no error of its own.

        Nothing is sent twice: a request that broke on the way may have been carried out.
        """
        upstream = await self._connected_upstream()
        try:
            await upstream.send(forwarded_request(request))
            answer = await upstream.receive()
        except h11.RemoteProtocolError:
            return None
        if answer is None or not isinstance(request.head, h11.Request):
            return None
        if not upstream.reuse():
            self._drop_upstream()
        return forwarded_response(answer, request.head.method)

    async def _connected_upstream(self) -> Wire:
        if self._upstream is not None and self._upstream.ended:
            self._drop_upstream()
        if self._upstream is None:
            self._upstream = Wire(*await asyncio.open_connection(*self._door.upstream()), h11.CLIENT)
        return self._upstream

    async def _break(self, plan: Plan, breaker: str | None) -> bool:
        """Hold the connection as long as the fault says, then break it; the client may leave first."""
        if plan.broken is None or breaker is None:
            return False
        waits = {asyncio.ensure_future(self._client.wait_for_end())}
        if not plan.broken.reset:
            waits.add(asyncio.ensure_future(_set(self._door.released(breaker))))
        try:
            await asyncio.wait(waits, timeout=plan.broken.after_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if plan.broken.reset:
            self._client.reset()
        return False

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._client.can_respond:
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            head = h11.Response(status_code=error.error_status_hint, headers=headers)
            await self._client.send(Message(head, b""))

    def _drop_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
            self._upstream = None


def injected_answer(plan: Plan) -> Message:
    """Return the answer that stands in for the provider's."""
    body = json.dumps({"ok": False, "error": plan.status, "injected": True}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if plan.retry_after_s is not None:
        headers.append((b"retry-after", str(plan.retry_after_s).encode()))
    return Message(h11.Response(status_code=plan.status or 503, headers=headers), body)


async def _set(event: asyncio.Event) -> None:
    await event.wait()
