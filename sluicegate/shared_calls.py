"""Let those who ask the store at the same time share a call (group commit): what comes together is kept together.

While as many calls as allowed are on their way, whoever asks waits for the next one. A call that fails fails for each
of its callers, who may then ask again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")

MOST_A_CALL = 100
_IN_FLIGHT = 2


class SharedCalls(Generic[Asked, Answered]):
    """Gather what is asked in one turn of the loop into calls of `send`, which gives an answer for each, in order.

    At most `in_flight` calls are on their way at once.
    """

    def __init__(
        self, send: Callable[[Sequence[Asked]], Awaitable[Sequence[Answered]]], in_flight: int = _IN_FLIGHT
    ) -> None:
        self._send = send
        self._in_flight = in_flight
        self._waiting: deque[tuple[asyncio.Future[Answered], Asked]] = deque()
        self._sending: set[asyncio.Task[None]] = set()
        self._flush_due = False

    def ask(self, asked: Asked) -> asyncio.Future[Answered]:
        """Ask once; what is given raises what the store raises."""
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, asked))
        if not self._flush_due:
            self._flush_soon()
        return answer

    def _flush_soon(self) -> None:
        if self._waiting and not self._flush_due and len(self._sending) < self._in_flight:
            # Not at once: whoever else is about to ask in this turn of the loop comes along.
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        while self._waiting and len(self._sending) < self._in_flight:
            batch = [self._waiting.popleft() for _ in range(min(MOST_A_CALL, len(self._waiting)))]
            # One who has gone, because its worker ends at once, asks for nothing any more.
            batch = [(answer, asked) for answer, asked in batch if not answer.cancelled()]
            if batch:
                task = asyncio.ensure_future(self._call(batch))
                self._sending.add(task)
                task.add_done_callback(self._sent)

    async def _call(self, batch: Sequence[tuple[asyncio.Future[Answered], Asked]]) -> None:
        try:
            answers = await self._send([asked for _, asked in batch])
        except Exception as error:  # noqa: BLE001 (whatever it was, each caller must hear of it)
            for answer, _ in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (answer, _), answered in zip(batch, answers, strict=True):
            if not answer.done():
                answer.set_result(answered)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._flush_soon()
