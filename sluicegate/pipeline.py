"""Send many commands over one connection without waiting for each answer; the answers come in the same order.

redis-py's pipeline parses each answer in Python; here hiredis parses all that has come, in C. What is no UTF-8 comes as
Python's surrogates: among a million records somebody's hand may have spoilt one, and the others are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from types import TracebackType
from typing import Any, Self

import hiredis
import redis

from sluicegate.redis_errors import lost
from sluicegate.wire import NOTHING_YET, Connection, pack

_READ_BYTES = 1 << 18
# Of a type that is none of these, an answer is looked at.
_VALUES = frozenset({str, int, float, list, dict, type(None)})
# No name of a queue has one.
_HERE = "\0"


def packed(*words: str | bytes | int) -> bytes:
    """Give a command as it goes over the wire."""
    return bytes(pack(words))


def packed_each(ids: Iterable[str], *commands: tuple[str | int, ...]) -> bytes:
    """Give the same commands for each id, as they go over the wire: it follows each command's second word.

    One word at a time would cost several times as much.
    """
    shapes: dict[int, str] = {}
    said: list[str] = []
    for one in ids:
        size = len(one) if one.isascii() else len(one.encode())
        shape = shapes.get(size)
        if shape is None:
            shape = shapes[size] = "".join([_shape(size, words) for words in commands])
        said.append(shape.replace(_HERE, one))
    return "".join(said).encode()


def _shape(size: int, words: tuple[str | int, ...]) -> str:
    """Give a command with a mark where an id of so many bytes is to be."""
    name, key, *rest = words
    filled = packed(name, f"{key}{'x' * size}", *rest).decode()
    head, _, tail = filled.partition(f"{key}{'x' * size}\r\n")
    return f"{head}{key}{_HERE}\r\n{tail}"


class Pipeline:
    """Own one connection until the block is left; it goes back only if all went well and nothing is on its way then.

    Its timeouts are those of the connection. Raises redis-py's errors, but for a key of another type: that is None.
    """

    def __init__(
        self, connection: Connection, give_back: Callable[[Connection], None], drop: Callable[[Connection], None]
    ) -> None:
        self._connection = connection
        self._give_back = give_back
        self._drop = drop
        self._awaited = 0
        self._speaks_resp3 = str(connection.protocol) == "3"
        self._reader: Any = hiredis.Reader(
            encoding="utf-8",
            errors="surrogateescape",
            notEnoughData=NOTHING_YET,
            replyError=connection._parser.parse_error,
        )

    def __enter__(self) -> Self:
        """Speak RESP 2: hiredis takes twice as long to make mappings as lists."""
        if self._speaks_resp3:
            self._say("HELLO", "2")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._awaited or kind is not None:
            self._drop(self._connection)
            return
        try:
            if self._speaks_resp3:
                self._say("HELLO", "3")
        except BaseException:
            self._drop(self._connection)
            raise
        self._give_back(self._connection)

    def _say(self, *words: str) -> None:
        self.send(packed(*words), 1)
        self.receive(1)

    def send(self, commands: bytes, answers: int) -> None:
        """Send packed commands that have so many answers."""
        self._awaited += answers
        try:
            self._connection._sock.sendall(commands)
        except OSError as error:
            raise lost(error) from error

    def receive(self, answers: int) -> list[Any]:
        """Wait for the next so many answers."""
        said: list[Any] = []
        try:
            while len(said) < answers:
                said.extend(islice(iter(self._reader.gets, NOTHING_YET), answers - len(said)))
                if not _VALUES.issuperset(map(type, said)):
                    said = [_no_value(one) for one in said if not isinstance(one, hiredis.PushNotification)]
                if len(said) < answers:
                    self._read_more()
        except OSError as error:
            raise lost(error) from error
        self._awaited -= answers
        return said

    def _read_more(self) -> None:
        read = self._connection._sock.recv(_READ_BYTES)
        if not read:
            raise redis.exceptions.ConnectionError("the server closed the connection")
        self._reader.feed(read)


def _no_value(answer: object) -> object:
    """Take an error about a key of another type as no value; raises every other error."""
    if isinstance(answer, redis.exceptions.MovedError):
        raise redis.exceptions.TryAgainError("the queue's slot has moved to another node of the cluster") from answer
    if isinstance(answer, Exception):
        if "WRONGTYPE" not in str(answer):
            raise answer
        return None
    return answer
