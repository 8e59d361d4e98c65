"""Send commands from an event loop over one connection: each goes out at once, and the answers come in the same order.

redis-py makes the connection, with its address, user, database and TLS. Then the loop's transport is used as it is, for
redis-py's own way to send a command and to wait for its answer costs several times as much of the client's CPU.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Self

import hiredis
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from sluicegate.redis_errors import is_no_primary, no_text
from sluicegate.wire import NOTHING_YET, Connection, pack

# Which of redis-py's asyncio connections stands for which of its others.
_ASYNC_KIND: Mapping[type, type] = {
    redis.Connection: redis.asyncio.Connection,
    redis.SSLConnection: redis.asyncio.SSLConnection,
    redis.UnixDomainSocketConnection: redis.asyncio.UnixDomainSocketConnection,
}
# redis-py's pools have no type of their own options.
Pool = Any


class ErrorAnswer(Exception):
    """Carry an error that the server answered, in its words; the command was not, or not wholly, carried out."""


class AsyncConnection:
    """Own one connection of one event loop to the server of a client; it is made when it is needed, and made again."""

    @classmethod
    def like_those_of(cls, client: redis.Redis) -> Self | None:
        """Give a connection like those of a client, or None where asyncio has none of their kind."""
        pool: Pool = client.connection_pool
        return cls(pool) if pool.connection_class in _ASYNC_KIND else None

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._making = asyncio.Lock()
        self._made: Connection | None = None
        self._answers: _Answers | None = None

    async def ask(self, words: tuple[str | int, ...], waits_s: float = 0.0) -> object:
        """Send one command, which blocks for at most `waits_s`, and give its answer.

        Raises ErrorAnswer, and redis-py's errors where no answer came: then each command behind it has none either.
        """
        answers, within_s = self._answers, self._pool.connection_kwargs.get("socket_timeout")
        try:
            async with asyncio.timeout(None if within_s is None else within_s + waits_s):
                if answers is None or answers.lost:
                    answers = await self._connect()
                return await answers.send(pack(words))
        except TimeoutError as error:
            if answers is not None:
                # An answer may still come, and the next command on this connection would get it.
                answers.abort()
            raise redis.exceptions.TimeoutError("no answer in time") from error

    async def close(self) -> None:
        """Close the connection; safe twice."""
        made, self._made = self._made, None
        if made is not None:
            await made.disconnect(nowait=True)

    async def _connect(self) -> _Answers:
        async with self._making:
            if self._answers is None or self._answers.lost:
                await self.close()
                self._made = _unmade(self._pool)
                await self._made.connect()
                transport = self._made._writer.transport
                self._answers = _Answers(transport)
                transport.set_protocol(self._answers)
            return self._answers


class _Answers(asyncio.Protocol):
    """Give what comes over a connection to those who wait for it, in the order in which they asked."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        self._reader: Any = hiredis.Reader(encoding="utf-8", notEnoughData=NOTHING_YET)
        self._waiting: deque[asyncio.Future[object]] = deque()
        self.lost = False

    def send(self, packed: bytes) -> asyncio.Future[object]:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._transport.write(packed)
        return answer

    def abort(self) -> None:
        self.lost = True
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (said := self._next()) is not NOTHING_YET:
            answer = self._waiting.popleft()
            if answer.done():
                continue  # whoever asked has gone
            if isinstance(said, hiredis.ReplyError):
                answer.set_exception(ErrorAnswer(str(said)))
                if is_no_primary(str(said)):
                    self.abort()  # the next command connects again, and may find the one that took over
                    return
            elif isinstance(said, redis.exceptions.InvalidResponse):
                answer.set_exception(said)
                self.abort()  # what the reader makes of the rest is not known
                return
            else:
                answer.set_result(said)

    def _next(self) -> object:
        try:
            return self._reader.gets()
        except UnicodeDecodeError as error:
            return no_text(error)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(redis.exceptions.ConnectionError(str(error or "the server closed the connection")))


def _unmade(pool: Pool) -> Connection:
    """Give an asyncio connection like those of the pool; raises ErrorAnswer where asyncio's takes other options."""
    kind = _ASYNC_KIND[pool.connection_class]
    given = {
        **pool.connection_kwargs,
        "retry": Retry(NoBackoff(), 0),
        # The bound is on the answer as a whole; redis-py's would cost a task a command.
        "socket_timeout": None,
        "protocol": 2,
    }
    try:
        return kind(**given)
    except TypeError as error:
        raise ErrorAnswer(f"{kind.__name__} takes other options: {error}") from error
