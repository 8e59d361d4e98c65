"""Find the server that a queue is on: the one of the address, the one the Sentinels name, or a slot's in a cluster.

Nothing is tried twice in silence. What a node of a cluster answered with "not here" did not run, so it is sent where
the node points, and to the next node where it says that the cluster is down; whatever got no answer is the caller's to
repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

import redis
from redis.crc import key_slot

from sluicegate.async_connection import AsyncConnection
from sluicegate.connections import Connections, Sent
from sluicegate.pipeline import Pipeline
from sluicegate.primary_watch import PrimaryWatch
from sluicegate.redis_errors import is_no_primary

T = TypeVar("T")
Place = tuple[str, int]
Words = tuple[str | int, ...]

# A slot that has just moved is pointed at once; a second time while nodes learn of a failover.
_MOST_MOVES = 2
# After these, what was known of the owner is worth nothing.
_LOST = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.MovedError,
    redis.exceptions.ClusterDownError,
)


class Server(Protocol):
    """Carry commands to wherever the queue is now; safe to share between threads."""

    def ask(self, words: Words, timeout_s: float | None) -> object:
        """Send one command; raises redis-py's errors. `timeout_s` bounds the answer, else the client's own does."""

    def start(self, words: Words) -> Sent | None:
        """Send one command without waiting for its answer, or give None where only `ask` can be used."""

    def pipeline(self) -> Pipeline:
        """Give a connection to the queue's server for many commands at once; raises redis-py's errors.

        In a cluster nobody follows a slot that moves meanwhile: that is an error of the pipeline.
        """

    def async_connection(self) -> AsyncConnection | None:
        """Give a connection of an event loop's own, or None where there is no such connection."""

    def run(self, command: Callable[[redis.Redis], T]) -> T:
        """Call redis-py's client of that server with a command that names a key of the queue; raises its errors."""

    def run_without_key(self, command: Callable[[redis.Redis], T]) -> T:
        """Do what `run` does with a command that names no key: another node would take it for its own."""

    def run_on_primaries(self, command: Callable[[redis.Redis], T], *, all_of_them: bool) -> Mapping[str, T | None]:
        """Call redis-py's client of every server that may hold the queue now or after a move, its own first.

        Gives what each came to by host and port; nothing where the settings name no cluster. One that can't be reached
        is passed over, with None, unless it is the queue's own; with `all_of_them` its error is raised in the end.
        """

    def break_off(self) -> None:
        """End the commands under way that were given a timeout of their own; they raise redis-py's errors."""

    def close(self) -> None:
        """Close every connection; safe twice."""


class OneServer:
    """Ask the server of one client; through Sentinels that is whichever they name when it connects."""

    def __init__(
        self,
        client: redis.Redis,
        *,
        owns: bool,
        beside: Sequence[redis.Redis] = (),
        watch: PrimaryWatch | None = None,
    ) -> None:
        self._client = client
        self._connections = Connections(client, keeps=owns, watch=watch)
        self._beside = beside

    def ask(self, words: Words, timeout_s: float | None) -> object:
        """Send one command (see Server)."""
        return self._connections.ask(words, timeout_s)

    def start(self, words: Words) -> Sent:
        """Send one command (see Server)."""
        return self._connections.start(words)

    def pipeline(self) -> Pipeline:
        """Give one (see Server)."""
        return self._connections.pipeline()

    def async_connection(self) -> AsyncConnection | None:
        """Give one as the client's are; through Sentinels there is none."""
        return AsyncConnection.like_those_of(self._client)

    def run(self, command: Callable[[redis.Redis], T]) -> T:
        """Call the client (see Server)."""
        return command(self._client)

    def run_without_key(self, command: Callable[[redis.Redis], T]) -> T:
        """Call the client (see Server)."""
        return command(self._client)

    def run_on_primaries(self, command: Callable[[redis.Redis], T], *, all_of_them: bool) -> Mapping[str, T]:
        """Call the client: there is one primary, which has no place here."""
        command(self._client)
        return {}

    def break_off(self) -> None:
        """End what takes too long (see Server)."""
        self._connections.break_off()

    def close(self) -> None:
        """Close every connection; safe twice."""
        self._connections.close()
        self._client.close()
        for one in self._beside:
            one.close()


class _Node:
    """Hold one node's client with its connections."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.connections = Connections(client, keeps=True)

    def close(self) -> None:
        self.connections.close()
        self.client.close()


class Cluster:
    """Ask the node of a cluster that has the queue's slot (that of `key`), found by asking: any node points to it.

    What is known of the owner is forgotten when it does not answer; then the nodes named in the settings are asked, the
    first that can be reached, and of those that say the cluster is down the next.
    """

    def __init__(
        self,
        first: Sequence[Place],
        connect: Callable[[str, int], redis.Redis],
        probe: Callable[[str, int], redis.Redis],
        key: str,
    ) -> None:
        """Take how a node's client is made, and one of less patience that only asks whether a node answers."""
        self._slot = key_slot(key.encode())
        self._first = tuple(first)
        self._connect = connect
        self._probes = {place: _Node(probe(*place)) for place in first}
        self._nodes: dict[Place, _Node] = {}
        self._owner: Place | None = None

    def ask(self, words: Words, timeout_s: float | None) -> object:
        """Send one command to the owner of the slot of its keys (see Server)."""
        return self._at_owner(lambda node: node.connections.ask(words, timeout_s))

    def start(self, words: Words) -> None:
        """Send nothing: the answer may point to another node, and only `ask` follows it."""

    def pipeline(self) -> Pipeline:
        """Give one to the owner as the last answer showed it (see Server)."""
        with self._forgetting():
            return self._node(next(self._candidates())).connections.pipeline()

    def async_connection(self) -> None:
        """Give none, for the same reason."""

    def run(self, command: Callable[[redis.Redis], T]) -> T:
        """Call the owner's client (see Server)."""
        return self._at_owner(lambda node: command(node.client))

    def run_without_key(self, command: Callable[[redis.Redis], T]) -> T:
        """Call the client of the owner that the last answer showed, or of the one that the nodes name (see Server)."""
        with self._forgetting():
            self._owner = owner = self._owner or self._primaries()[0]
            return command(self._node(owner).client)

    def run_on_primaries(self, command: Callable[[redis.Redis], T], *, all_of_them: bool) -> Mapping[str, T | None]:
        """Call the client of every primary that has slots (see Server)."""
        came_to: dict[str, T | None] = {}
        silent: redis.exceptions.RedisError | None = None
        with self._forgetting():
            own, others = self._primaries()
            came_to[_named(own)] = command(self._node(own).client)
        # One of the others that does not answer says nothing of the queue's own, and keeps none from its turn.
        for place in others:
            try:
                came_to[_named(place)] = command(self._node(place).client)
            except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
                came_to[_named(place)], silent = None, error
        if silent is not None and all_of_them:
            raise silent
        return came_to

    def break_off(self) -> None:
        """End what takes too long at any node (see Server)."""
        for node in tuple(self._nodes.values()):
            node.connections.break_off()

    def close(self) -> None:
        """Close every connection; safe twice."""
        for one in self._probes.values():
            one.close()
        while self._nodes:
            self._nodes.popitem()[1].close()

    def _at_owner(self, send: Callable[[_Node], T]) -> T:
        with self._forgetting():
            down = redis.exceptions.ClusterDownError("no node was asked")
            for place in self._candidates():
                try:
                    return self._followed(place, send)
                except redis.exceptions.ClusterDownError as error:
                    # It ran nothing, and others may know better: so speaks a node that was cut off, or has just joined.
                    down = error
            raise down

    def _followed(self, place: Place, send: Callable[[_Node], T]) -> T:
        for _ in range(_MOST_MOVES):
            try:
                answer = send(self._node(place))
            except redis.exceptions.MovedError as moved:
                place = _pointed_at(moved, place)
                continue
            self._owner = place
            return answer
        return send(self._node(place))

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Look for the owner anew, and at another node, after an answer that says nothing of the queue, or none."""
        try:
            yield
        except redis.exceptions.RedisError as error:
            if isinstance(error, _LOST) or is_no_primary(error):
                self._owner = None
                self._first = self._first[1:] + self._first[:1]
            raise

    def _candidates(self) -> Iterator[Place]:
        """Give whom to ask, one after the other: the owner as it is known, and the nodes to begin with that answer.

        The first of these that does is the first from then on: one that is gone is not asked at every call. Where none
        answers in its share of the time one is given all the same, for the whole of it: nodes may be slow and well.
        """
        owner, first = self._owner, self._first
        found = owner is not None
        if owner is not None:
            yield owner
        for number, place in enumerate(first):
            if place != owner and self._answers(place):
                found = True
                self._first = first[number:] + first[:number]
                yield place
        if not found:
            yield first[0]

    def _answers(self, place: Place) -> bool:
        try:
            self._probes[place].connections.ask(("PING",), None)
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            return False
        except redis.exceptions.ResponseError:
            pass  # "Not you" is an answer.
        return True

    def _node(self, place: Place) -> _Node:
        node = self._nodes.get(place)
        if node is None:
            # Of two threads at once, one's client is dropped before it has connected.
            node = self._nodes.setdefault(place, _Node(self._connect(*place)))
        return node

    def _primaries(self) -> tuple[Place, Sequence[Place]]:
        """Give the owner of the queue's slot and the other primaries with slots, as the first tells that knows it.

        Raises redis-py's ClusterDownError where nobody does.
        """
        for asked in self._candidates():
            owner: Place | None = None
            primaries: dict[Place, None] = {}
            for row in cast("list[list[Any]]", self._node(asked).connections.ask(("CLUSTER", "SLOTS"), None)):
                place = (_text(row[2][0]) or asked[0], int(row[2][1]))
                primaries[place] = None
                if int(row[0]) <= self._slot <= int(row[1]):
                    owner = place
            if owner is not None:
                return owner, [place for place in primaries if place != owner]
        raise redis.exceptions.ClusterDownError("no node that answers knows who has the queue's slot")


def _named(place: Place) -> str:
    host, port = place
    return f"{host}:{port}"


def _pointed_at(moved: redis.exceptions.MovedError, asked: Place) -> Place:
    """Give where an answer points to; a node that does not know its own host leaves it out, and means the same one."""
    return (moved.host or asked[0], int(moved.port))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")
