"""Keep the connections of one store: whoever calls takes one and gives it back, so as many are open as were needed.

redis-py makes the connections, with their address, user, database and TLS, and closes them. A plain socket is then used
as it is (wire.py). redis-py's pool costs even more of the client's CPU than its way to send a command and to read its
answer, so a store that has a pool of its own keeps what it once took.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import redis

from sluicegate.pipeline import Pipeline
from sluicegate.primary_watch import PrimaryWatch
from sluicegate.redis_errors import is_no_primary, lost, no_text
from sluicegate.wire import Connection, Wire, pack

# Those whose socket is used as it is. Of TLS a socket alone does not tell what has come, and a connection made through
# Sentinels has rules of its own for what it reads.
_PLAIN = (redis.Connection, redis.UnixDomainSocketConnection)
# What redis-py raises where no answer came.
_LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)


@dataclass(frozen=True, slots=True)
class Sent:
    """Hold a command that is on its way: wait for its answer (raises as `Connections.ask`), or let it be nobody's."""

    answer: Callable[[], object]
    abandon: Callable[[], None]


class Connections:
    """Send commands on connections of redis-py's pool; safe to share between threads and across a fork.

    `keeps` says that nobody else uses the pool, so that idle connections need not go back to it. `watch` knows when the
    primary is elsewhere than they lead to.
    """

    def __init__(self, client: redis.Redis, *, keeps: bool, watch: PrimaryWatch | None = None) -> None:
        self._pool: Any = client.connection_pool
        self._keeps = keeps
        self._watch = watch
        self._idle: list[Connection] = []
        self._wires: dict[Connection, Wire] = {}
        self._timed: set[Connection] = set()
        # A mark of the last loss, and the one that stood when each connection began to be made: what is older than the
        # last loss leads to the server that was lost.
        self._last_loss = object()
        self._made_after: dict[Connection, object] = {}
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

    def pipeline(self) -> Pipeline:
        """Give a connection for many commands at once (see Pipeline); raises redis-py's errors where there is none."""
        return Pipeline(self._connected(), self._give_back, self._drop)

    def _send(self, words: tuple[str | int, ...]) -> Connection:
        connection = self._take()
        try:
            wire = self._wire_of(connection)
            if wire is None:
                connection.send_command(*words)
            else:
                wire.send(pack(words))
        except OSError as error:
            self._lose(connection)
            raise lost(error) from error
        except BaseException:
            self._drop(connection)
            raise
        return connection

    def _read(self, connection: Connection, timeout_s: float | None) -> object:
        if timeout_s is not None:
            self._timed.add(connection)
        try:
            answer = self._answer(connection, timeout_s)
        except _LOST:
            self._lose(connection)
            raise
        except redis.exceptions.ResponseError as error:
            if is_no_primary(error):
                self._lose(connection)
            else:
                self._give_back(connection)
            raise
        except UnicodeDecodeError as error:
            self._drop(connection)
            raise no_text(error) from error
        except OSError as error:
            self._lose(connection)
            raise lost(error) from error
        except BaseException:
            self._drop(connection)
            raise
        finally:
            if timeout_s is not None:
                self._timed.discard(connection)
        self._give_back(connection)
        return answer

    def _answer(self, connection: Connection, timeout_s: float | None) -> object:
        wire = self._wires.get(connection)
        if timeout_s is not None:
            come = connection.can_read(timeout=timeout_s) if wire is None else wire.has_come(timeout_s * 1000)
            if not come:
                raise redis.exceptions.TimeoutError(f"no answer within {timeout_s:.3f} s")
        return cast("object", connection.read_response()) if wire is None else wire.read()

    def _wire_of(self, connection: Connection) -> Wire | None:
        """Give the socket that a connection has now, making it if need be; None where redis-py must send and read."""
        if connection._sock is None:
            # With the command redis-py would connect to where it was, and ask no Sentinel.
            connection.connect()
        wire = self._wires.get(connection)
        if wire is not None and wire.socket is connection._sock:
            return wire
        if type(connection) not in _PLAIN:
            return None
        self._wires[connection] = wire = Wire(connection)
        return wire

    def _connected(self) -> Connection:
        connection = self._take()
        try:
            connection.connect()
        except BaseException:
            self._drop(connection)
            raise
        return connection

    def _lose(self, connection: Connection) -> None:
        """Let go of one whose server has gone, or is no primary, and of all others: they lead to the same server.

        It may go on after another has taken over. Those in use are closed when they are given back. One that is from
        before the last loss says nothing of those that were made since.
        """
        is_latest = self._is_latest(connection)
        self._drop(connection)
        if is_latest:
            self._last_loss = object()
            self._close_idle()

    def _is_latest(self, connection: Connection) -> bool:
        return self._made_after.get(connection) is self._last_loss

    def _drop(self, connection: Connection) -> None:
        self._made_after.pop(connection, None)
        # An answer may still come, and the next command on this connection would get it.
        self._wires.pop(connection, None)
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
        self._close_idle()
        self._wires.clear()

    def _close_idle(self) -> None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            self._drop(connection)

    def _give_back(self, connection: Connection) -> None:
        if not self._is_latest(connection):
            self._drop(connection)
        elif self._keeps:
            self._idle.append(connection)
        else:
            del self._made_after[connection]
            self._pool.release(connection)

    def _take(self) -> Connection:
        if self._pid != os.getpid():
            # The parent goes on with its connections; the pool of a child opens its own.
            self._idle, self._wires, self._made_after, self._pid = [], {}, {}, os.getpid()
        connection = self._latest_idle()
        if connection is None:
            return self._new()
        if self._watch is not None and self._watch.has_left((connection.host, connection.port)):
            self._lose(connection)
            return self._new()
        if self._is_stale(connection):
            connection.disconnect()
        return connection

    def _latest_idle(self) -> Connection | None:
        """Give an idle connection; one that was given back just as another was lost is closed instead."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if self._is_latest(connection):
                return connection
            self._drop(connection)

    def _new(self) -> Connection:
        last_loss = self._last_loss
        connection = self._pool.get_connection()
        self._made_after[connection] = last_loss
        return connection

    def _is_stale(self, connection: Connection) -> bool:
        """Say whether an idle connection was closed by the server, or answered out of turn."""
        wire = self._wires.get(connection)
        if wire is not None and wire.socket is connection._sock:
            return bool(wire.has_come(0))
        try:
            return bool(connection.can_read(timeout=0))
        except (redis.exceptions.RedisError, OSError):
            return True
