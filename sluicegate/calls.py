"""Call the function library of one queue, wherever it lives: as a function or a script, translated at the border.

A lost answer is `StoreUnavailable`: the command may have run, so whoever repeats it does so with the same request id.
redis-py would retry ten times by itself, so its retries are off and both timeouts are set.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeGuard, TypeVar, cast

import redis

from sluicegate import functions, keys, redis_clients
from sluicegate.async_connection import AsyncConnection, ErrorAnswer
from sluicegate.audit import Ends, Entry
from sluicegate.connections import Sent
from sluicegate.errors import OtherLibrary, StoreRejected, UsageError
from sluicegate.keys import Keys
from sluicegate.pipeline import Pipeline, packed
from sluicegate.primary_watch import PrimaryWatch
from sluicegate.redis_clients import Access
from sluicegate.redis_errors import forbids_functions, translated
from sluicegate.redis_servers import Cluster, OneServer, Server
from sluicegate.redis_settings import host_and_port
from sluicegate.remedies import QUEUE_UPGRADE
from sluicegate.settings import Settings
from sluicegate.turn import Turn

Arguments = Mapping[str, Any]
_T = TypeVar("_T")
Words = Sequence[str | int]
_MISSING_FUNCTION = "Function not found"
# Calls of a reader as scripts, before it looks for its function again.
_SCRIPTS_BETWEEN = 100
# Entries of the audit log a call.
_AUDIT_PART = 500


class Calls:
    """Call the functions of one queue by name; safe to share between threads.

    It remembers the highest epoch it has seen and sends it along: older data answers closed (contract §6).
    """

    def __init__(self, server: Server | redis.Redis, queue: str, *, read_only: bool = False) -> None:
        self._server = OneServer(server, owns=False) if isinstance(server, redis.Redis) else server
        self.keys = Keys.for_queue(queue)
        self._read_only = read_only
        self._scripts: dict[str, str] = {}
        self._epoch = 0
        self._lock = threading.Lock()
        self._function_forbidden = False
        self._scripts_left = 0

    @classmethod
    def connect(
        cls,
        url: str,
        queue: str = keys.DEFAULT_QUEUE,
        *,
        read_only: bool = False,
        connect_timeout_s: float = 1.0,
        timeout_s: float = 1.0,
    ) -> Self:
        """Prepare a store; does no I/O. Raises UsageError on an address that is not a Redis URL."""
        return cls.reach(
            Access(url, connect_timeout_s=connect_timeout_s, timeout_s=timeout_s), queue, read_only=read_only
        )

    @classmethod
    def of(cls, settings: Settings, queue: str = "", *, read_only: bool = False, timeout_s: float = 1.0) -> Self:
        """Prepare a store of the settings' server, for their queue if no other is named; connects to nothing.

        Raises UsageError on an address, or a file that the settings name, that can't be used.
        """
        access = Access(
            settings.redis_url,
            settings.redis,
            settings.redis_password_file,
            connect_timeout_s=timeout_s,
            timeout_s=timeout_s,
        )
        return cls.reach(access, queue or settings.queue, read_only=read_only)

    @classmethod
    def reach(cls, access: Access, queue: str, *, read_only: bool = False) -> Self:
        """Prepare a store of the server that `access` describes; connects to nothing. Raises UsageError as `of`."""
        return cls(_server(access, queue), queue, read_only=read_only)

    @property
    def queue(self) -> str:
        return self.keys.queue

    @property
    def epoch_seen(self) -> int:
        return self._epoch

    def close(self) -> None:
        """Close every connection; safe twice."""
        self._server.close()

    def break_off(self) -> None:
        """End the reads under way that were given a time of their own; their callers get StoreUnavailable."""
        self._server.break_off()

    def load(self) -> None:
        """Load the function library on every primary in reach; an identical or forbidden one is left alone."""
        try:
            self._server.run_on_primaries(self._load_on, all_of_them=False)
        except redis.exceptions.RedisError as error:
            raise translated(error) from error

    def _load_on(self, client: redis.Redis) -> None:
        try:
            client.function_load(functions.library())
        except redis.exceptions.ResponseError as error:
            if "already exists" in str(error):
                return
            if not isinstance(error, redis.exceptions.NoPermissionError) and "unknown command" not in str(error):
                raise
            self._function_forbidden = True

    def _call(self, command: str, arguments: Arguments, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Call a function that takes and answers one JSON object."""
        return self._parsed(command, self._ask(command, (_packed(arguments),), timeout_s))

    def _begin(self, command: str, arguments: Arguments) -> Coming:
        """Send such a call; one that may be repeated, as `_start` says. Its answer is for `_answered`."""
        return self._start(command, (_packed(arguments),))

    def _answered(self, command: str, coming: Coming) -> Mapping[str, Any]:
        return self._parsed(command, coming.raw())

    def _parsed(self, command: str, text: object) -> Mapping[str, Any]:
        try:
            body = json.loads(cast("str", text))
        except (TypeError, ValueError) as error:
            raise StoreRejected(f"{command} answered something that is not JSON: {text!r:.100}") from error
        if not isinstance(body, dict):
            raise StoreRejected(f"{command} answered something that is no object: {text!r:.100}")
        self._remember_epoch(body)
        return cast("Mapping[str, Any]", body)

    def audit(self) -> Iterator[tuple[Ends, tuple[Entry, ...]]]:
        """Give the audit log, oldest first, in parts, each with the chain's ends of the same instant.

        The last part is empty, or reaches to the end.
        """
        after = "-"
        while True:
            body = self._call("audit", {"after": after, "limit": _AUDIT_PART})
            rows = body["entries"] if isinstance(body["entries"], list) else []
            yield Ends.of(body["head"]), tuple(Entry.of(fields) for _, fields in rows)
            if len(rows) < _AUDIT_PART:
                return
            after = rows[-1][0]

    def audit_ends(self) -> Ends:
        """Give the audit log's two ends."""
        return Ends.of(self._call("audit", {"after": "-", "limit": 1})["head"])

    def _hot(self, command: str, words: Words) -> list[Any]:
        """Call a function that takes its arguments one by one and answers one flat list."""
        return flat(command, self._ask(command, words, None))

    def _hot_keeping_bytes(self, command: str, words: Words) -> list[Any]:
        """Ask again for an answer that came and was no text: what is no UTF-8 in it comes as Python's surrogates."""
        call = self._call_of(command, words)
        if self._function_forbidden:
            call = ("EVAL", functions.script(command, read_only=False), 1, *self._arguments(words))
        with self._pipeline() as pipeline:
            pipeline.send(packed(*call), 1)
            return flat(command, pipeline.receive(1)[0])

    async def _hot_async(
        self, connection: AsyncConnection | None, command: str, words: Words, turn: Turn | None = None
    ) -> list[Any]:
        """Do what `_hot` does without holding the event loop up; answers and failures are the same.

        Calls that share a `turn` stay in order in threads, too.
        """
        if self.goes_over(connection) and not (turn is not None and turn.is_taken):
            try:
                return flat(command, await connection.ask(self._call_of(command, words)))
            except ErrorAnswer:
                pass  # No such function, or none for this user, or no memory: the other way knows what to do or to say.
            except redis.exceptions.RedisError as error:
                raise translated(error) from error
        if turn is not None:
            return await turn.call(self._hot, command, words)
        return await asyncio.to_thread(self._hot, command, words)

    def goes_over(self, connection: AsyncConnection | None) -> TypeGuard[AsyncConnection]:
        """Say whether calls go over an event loop's connection: functions do, as long as the user may call them."""
        return connection is not None and not (self._read_only or self._function_forbidden)

    def _start(self, command: str, words: Words) -> Coming:
        """Send a hot command; one that may be repeated, for where the server has no such function it is sent again."""
        if self._read_only or self._function_forbidden:
            return Coming(self, command, words, None)
        try:
            return Coming(self, command, words, self._server.start(self._call_of(command, words)))
        except redis.exceptions.RedisError as error:
            raise translated(error) from error

    @contextmanager
    def _pipeline(self) -> Iterator[Pipeline]:
        """Have a connection for many commands at once; what it raises in the block is translated."""
        try:
            with self._server.pipeline() as pipeline:
                yield pipeline
        except redis.exceptions.RedisError as error:
            raise translated(error) from error

    def _arguments(self, words: Words) -> tuple[str | int, ...]:
        return (self.keys(keys.GATE), self.keys.prefix, str(self._epoch), *words)

    def _call_of(self, command: str, words: Words) -> tuple[str | int, ...]:
        return ("FCALL", functions.function_name(command), 1, *self._arguments(words))

    def _ask(self, command: str, words: Words, timeout_s: float | None) -> object:
        arguments = self._arguments(words)
        try:
            return self._send(command, arguments, timeout_s)
        except redis.exceptions.RedisError as error:
            raise translated(error) from error

    def _send(
        self, command: str, arguments: tuple[str | int, ...], timeout_s: float | None, *, loaded: bool = False
    ) -> object:
        if self._read_only:
            return self._send_reading(command, arguments, timeout_s)
        if self._function_forbidden:
            return self._send_script(command, arguments, timeout_s)
        try:
            return self._server.ask(("FCALL", functions.function_name(command), 1, *arguments), timeout_s)
        except redis.exceptions.ResponseError as error:
            self._function_forbidden = forbids_functions(error)
            missing = _MISSING_FUNCTION in str(error)
            if missing and loaded:
                raise self._other_library(command) from error
            if not missing and not self._function_forbidden:
                raise
        if not self._function_forbidden:
            self.load()
        return self._send(command, arguments, timeout_s, loaded=True)

    def _other_library(self, command: str) -> OtherLibrary:
        return OtherLibrary(
            f"The server's function library {functions.LIBRARY} has other code "
            f"({self.loaded_library() or 'not shown'}) than this version of Sluicegate "
            f"({functions.digest_of(functions.library())}): it has no {command}.\n"
            f"Finish the roll-out of this version, then `{QUEUE_UPGRADE}` replaces the library."
        )

    def _send_reading(self, command: str, arguments: tuple[str | int, ...], timeout_s: float | None) -> object:
        """Call the loaded function if it is this source, else run it as a script, which takes the server longer.

        Who may not call it, or does not find it, asks again after a while: somebody may load it, or allow it.
        """
        if self._scripts_left > 0:
            self._scripts_left -= 1
            return self._send_script(command, arguments, timeout_s)
        try:
            return self._server.ask(("FCALL_RO", functions.reading_name(command), 1, *arguments), timeout_s)
        except redis.exceptions.ResponseError as error:
            if _MISSING_FUNCTION not in str(error) and not forbids_functions(error):
                raise
        self._scripts_left = _SCRIPTS_BETWEEN
        return self._send_script(command, arguments, timeout_s)

    def _send_script(self, command: str, arguments: tuple[str | int, ...], timeout_s: float | None) -> object:
        """Run the same source as a script: for a reader that cannot load, and where FUNCTION is forbidden."""
        source = functions.script(command, read_only=self._read_only)
        suffix = "_RO" if self._read_only else ""
        if command in self._scripts:
            try:
                return self._server.ask((f"EVALSHA{suffix}", self._scripts[command], 1, *arguments), timeout_s)
            except redis.exceptions.NoScriptError:
                pass
        self._scripts[command] = _sha1(source)
        return self._server.ask((f"EVAL{suffix}", source, 1, *arguments), timeout_s)

    def _remember_epoch(self, body: Mapping[str, Any]) -> None:
        gate = body.get("gate")
        raw = body.get("epoch") or (gate.get("epoch") if isinstance(gate, Mapping) else None)
        if raw is not None:
            self._saw(int(raw))

    def _saw(self, epoch: int) -> None:
        if epoch > self._epoch:
            with self._lock:
                self._epoch = max(self._epoch, epoch)

    def loaded_library(self) -> str | None:
        """Give the digest of the code that is loaded under the library's name; empty where there is none."""
        return self._seen(library_of)

    def _shown(self, *words: str) -> object:
        return self._seen(lambda client: cast("object", cast("Any", client).execute_command(*words)))

    def _seen(self, look: Callable[[redis.Redis], _T]) -> _T | None:
        """Look at the server itself; None for what it does not show to this user."""
        try:
            return self._server.run_without_key(look)
        except redis.exceptions.RedisError as error:
            is_refusal = isinstance(error, redis.exceptions.ResponseError)
            if is_refusal and not isinstance(error, redis.exceptions.ClusterDownError):
                return None
            raise translated(error) from error


def library_of(client: redis.Redis) -> str | None:
    """Give the digest of the code that this server has under the library's name, "" without any, None if unseen."""
    try:
        found = cast("Any", client).execute_command("FUNCTION LIST", "LIBRARYNAME", functions.LIBRARY, "WITHCODE")
    except redis.exceptions.ResponseError:
        return None
    if not isinstance(found, list):
        return None
    codes = [dict(zip(one[::2], one[1::2], strict=True))["library_code"] for one in found]
    return functions.digest_of(codes[0]) if codes else ""


def _server(access: Access, queue: str) -> Server:
    nodes = access.settings.cluster_nodes
    if nodes:
        if not Keys.for_queue(queue).prefix:
            raise UsageError(
                f"The queue {queue!r} can't live in a cluster: its keys have no prefix that keeps them in one slot.",
                "Give the queue another name with the setting `queue` or --queue NAME.",
            )
        redis_clients.check(access)
        # To find one that answers they get the time of one connection together: one that hangs must not use it up.
        share_s = access.connect_timeout_s / len(nodes)
        return Cluster(
            [host_and_port(one) for one in nodes],
            partial(redis_clients.node, access),
            partial(redis_clients.node, replace(access, connect_timeout_s=share_s, timeout_s=share_s)),
            Keys.for_queue(queue)(keys.GATE),
        )
    if access.settings.sentinels:
        client, sentinels = redis_clients.primary_by_sentinels(access)
        pool: Any = client.connection_pool
        return OneServer(client, owns=True, beside=sentinels, watch=PrimaryWatch(pool.get_master_address))
    return OneServer(redis_clients.single(access), owns=True)


class Coming:
    """Hold a hot command that is on its way, or that could not be sent ahead and is asked when its answer is."""

    def __init__(self, calls: Calls, command: str, words: Words, sent: Sent | None) -> None:
        self._calls = calls
        self._command = command
        self._words = words
        self._sent = sent

    def answer(self) -> list[Any]:
        """Wait for the flat list that a hot command answers."""
        return flat(self._command, self.raw())

    def raw(self) -> object:
        """Wait for the answer, whatever it is."""
        sent, self._sent = self._sent, None
        if sent is not None:
            try:
                return sent.answer()
            except redis.exceptions.ResponseError:
                pass  # Asked again in the ordinary way, which knows what to do or to say.
            except redis.exceptions.RedisError as error:
                raise translated(error) from error
        return self._calls._ask(self._command, self._words, None)

    def abandon(self) -> None:
        """Let the answer be nobody's; nothing where it was given."""
        if self._sent is not None:
            self._sent.abandon()


def _packed(arguments: Arguments) -> str:
    return json.dumps(arguments, separators=(",", ":"))


def flat(command: str, answer: object) -> list[Any]:
    """Give the flat list that a hot command answers; raises StoreRejected on anything else."""
    if not isinstance(answer, list):
        raise StoreRejected(f"{command} answered something that is not a list: {answer!r:.100}")
    return answer


def _sha1(source: str) -> str:
    return hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
