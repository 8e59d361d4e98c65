"""Keep the connections of one store: whoever calls takes one and gives it back, so as many are open as were needed.

redis-py's own way to send a command costs two to three times as much of the client's CPU; its connections do the rest.
Half of that is its pool, so a store that has a pool of its own keeps what it once took.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import redis

# redis-py leaves the methods of its connections untyped.
Connection = Any


@dataclass(frozen=True, slots=True)
class Sent:
    """Hold a command that is on its way: wait for its answer (raises as `Connections.ask`), or let it be nobody's."""

    answer: Callable[[], object]
    abandon: Callable[[], None]


class Connections:
    """Send commands on connections of redis-py's pool; safe to share between threads and across a fork.

    `keeps` says that nobody else uses the pool, so that idle connections need not go back to it.
    """

    def __init__(self, client: redis.Redis, *, keeps: bool) -> None:
        self._pool: Any = client.connection_pool
        self._keeps = keeps
        self._idle: list[Connection] = []
        # How to see whether anything has come over a connection's socket: redis-py would make that anew for every look.
        self._looks: dict[Connection, tuple[socket.socket, select.poll]] = {}
        self._timed: set[Connection] = set()
        self._pid = os.getpid()

    def ask(self, words: tuple[str | int, ...], timeout_s: float | None) -> object:
        """Send one command and give its answer; raises redis-py's errors, and a connection that failed is closed.

        `timeout_s` bounds this answer alone; without it the client's own timeout does.
        """
        return self._read(self._send(words), timeout_s)

    def start(self, words: tuple[str | int, ...]) -> Sent:
        """Send one command without waiting for its answer; raises as `ask`."""
        connection = self._send(words)
        return Sent(lambda: self._read(connection, None), lambda: self._drop(connection))

    def _send(self, words: tuple[str | int, ...]) -> Connection:
        connection = self._take()
        try:
            connection.send_command(*words)
        except BaseException:
            self._drop(connection)
            raise
        return connection

    def _read(self, connection: Connection, timeout_s: float | None) -> object:
        if timeout_s is not None:
            self._timed.add(connection)
        try:
            if timeout_s is not None and not connection.can_read(timeout=timeout_s):
                raise redis.exceptions.TimeoutError(f"no answer within {timeout_s:.3f} s")
            answer = cast("object", connection.read_response())
        except redis.exceptions.ResponseError:
            self._give_back(connection)
            raise
        except UnicodeDecodeError as error:
            # Somebody's hand wrote what is no text; whoever reads it must not end by that.
            self._drop(connection)
            raise redis.exceptions.InvalidResponse(f"the answer holds what is no UTF-8: {error}") from error
        except BaseException:
            self._drop(connection)
            raise
        finally:
            self._timed.discard(connection)
        self._give_back(connection)
        return answer

    def connect(self) -> None:
        """Have a connection ready without sending a command; raises redis-py's errors where there can be none."""
        connection = self._take()
        try:
            connection.connect()
        except BaseException:
            self._drop(connection)
            raise
        self._give_back(connection)

    def _drop(self, connection: Connection) -> None:
        # An answer may still come, and the next command on this connection would get it.
        self._looks.pop(connection, None)
        connection.disconnect()
        self._pool.release(connection)

    def break_off(self) -> None:
        """End the calls under way that have a timeout of their own; each raises a connection error in its thread.

        The timeout bounds the wait for an answer's next bytes: one that comes byte by byte would never be late.
        """
        for connection in tuple(self._timed):
            wire = connection._sock
            if wire is not None:
                with contextlib.suppress(OSError):  # it was closed already
                    wire.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give every idle connection back to the pool; safe twice."""
        self._looks.clear()
        while self._idle:
            connection = self._idle.pop()
            connection.disconnect()
            self._pool.release(connection)

    def _give_back(self, connection: Connection) -> None:
        if self._keeps:
            self._idle.append(connection)
        else:
            self._pool.release(connection)

    def _take(self) -> Connection:
        if self._pid != os.getpid():
            # The parent goes on with its connections; the pool of a child opens its own.
            self._idle, self._looks, self._pid = [], {}, os.getpid()
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._pool.get_connection()
        if self._is_stale(connection):
            connection.disconnect()
        return connection

    def _is_stale(self, connection: Connection) -> bool:
        """Say whether an idle connection was closed by the server, or answered out of turn."""
        wire = connection._sock
        if wire.__class__ is not socket.socket:
            # Of TLS the socket alone does not tell.
            try:
                return bool(connection.can_read(timeout=0))
            except (redis.exceptions.RedisError, OSError):
                return True
        known = self._looks.get(connection)
        if known is None or known[0] is not wire:
            look = select.poll()
            look.register(wire, select.POLLIN)
            known = self._looks[connection] = (wire, look)
        return bool(known[1].poll(0))
