"""The only doorway to Redis: one method a command, and typed answers. How a command gets there is in calls.py.

Here are the contract, the gate and the server; jobs, runs and snapshots have a file each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import redis

from sluicegate import functions, keys, observed, replies
from sluicegate.async_connection import AsyncConnection, ErrorAnswer
from sluicegate.calls import Words, flat, library_of
from sluicegate.errors import StoreRejected
from sluicegate.gate_events import Answer
from sluicegate.job_calls import JobCalls
from sluicegate.redis_errors import translated
from sluicegate.run_calls import RunCalls
from sluicegate.snapshot_calls import SnapshotCalls
from sluicegate.telemetry import Telemetry


class Store(JobCalls, RunCalls, SnapshotCalls):
    """Name every command of one queue; safe to share between threads."""

    # The contract and the gate.

    def init_queue(self, contract: str, digest: str, actor: str, reason: str) -> replies.GateAnswer:
        """Open a new queue; `not_empty` where one lives already, `old_layout` where one of version 1 does.

        `why` names the key found.
        """
        self.load()
        body = self._call("init", {"contract": contract, "digest": digest, "actor": actor, "reason": reason})
        return replies.GateAnswer(
            answer=body["answer"],
            drain_state="admit" if body["answer"] == "moved" else "drain",
            epoch=int(body.get("epoch", 0)),
            why=body.get("found", ""),
        )

    def apply_settings(self, contract: str, digest: str, actor: str, reason: str) -> str:
        """Replace the stored contract; gives moved, unchanged, unreadable or old_layout."""
        body = self._call("apply_settings", {"contract": contract, "digest": digest, "actor": actor, "reason": reason})
        return str(body["answer"])

    def settings(self) -> Mapping[str, str]:
        """Give the stored contract with its digest, and who wrote it when and why; empty without one."""
        return {str(name): str(value) for name, value in self._call("settings", {}).items()}

    def observe(self, timeout_s: float | None = None) -> Telemetry:
        """Read every figure of one instant, in one read-only round trip of at most `timeout_s`."""
        return self._reading("observe", (), timeout_s)

    async def observe_async(self, connection: AsyncConnection) -> Telemetry | None:
        """Do what `observe` does in an event loop, on a connection of `async_connection`, within its timeout.

        None where only `observe` knows the way: without the loaded function, and on every error that Redis answers.
        """
        if not self._read_only or self._scripts_left > 0:
            return None
        call = ("FCALL_RO", functions.reading_name("observe"), 1, *self._arguments(()))
        try:
            answer = await connection.ask(call)
        except ErrorAnswer:
            return None
        except redis.exceptions.RedisError as error:
            raise translated(error) from error
        return self._telemetry_in("observe", answer)

    def _reading(self, command: str, words: Words, timeout_s: float | None = None) -> Telemetry:
        return self._telemetry_in(command, self._ask(command, words, timeout_s))

    def _telemetry_in(self, command: str, reply: object) -> Telemetry:
        answer = flat(command, reply)
        try:
            self._saw(observed.epoch_of(answer))
            return observed.telemetry(answer, self.queue)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            raise StoreRejected(f"{command} answered something that is no reading: {error!r:.100}") from error

    def lead(self, controller: str) -> tuple[bool, str]:
        """Take or renew the controller's lease; gives whether it leads, and its fence."""
        body = self._call("lead", {"controller": controller})
        return bool(body["leading"]), str(body["fence"])

    def tick(self, fence: str) -> Telemetry:
        """Adopt hand edits and find overdue limits, then read the figures."""
        return self._reading("tick", (fence,))

    def move_gate(
        self, *, action: str, reason: str, exit_ok: bool, epoch: int, fence: str, figures: str
    ) -> replies.GateAnswer:
        """Apply the controller's decision; loosening needs the epoch that the figures were read at."""
        arguments = {
            "action": action,
            "reason": reason,
            "exit_ok": exit_ok,
            "epoch": str(epoch),
            "fence": fence,
            "figures": figures,
        }
        return replies.GateAnswer.of(self._call("move_gate", arguments))

    def order(
        self, order: str, actor: str, reason: str, *, pin: bool = True, run: str = "", seen: str = ""
    ) -> replies.GateAnswer:
        """Carry out a named person's order on the gate; `run` is the one that an abort is meant for, if it is named.

        `seen` is the gate that the person looked at (`GateView.seen`): of another one the order is `stale`.
        """
        asked = {"order": order, "actor": actor, "reason": reason, "pin": pin, "run": run, "seen": seen}
        return replies.GateAnswer.of(self._call("order", asked))

    def gate_log(self, limit: int = 50) -> tuple[replies.GateLogEntry, ...]:
        """Give the newest gate moves, newest first."""
        body = self._call("gate_log", {"limit": limit})
        return tuple(replies.GateLogEntry.of(entry) for entry in replies.rows(body, "entries"))

    def kill_switch(self, *, on: bool, actor: str, reason: str) -> None:
        """Forbid, or allow again, every run that no named person asked for."""
        self._call("kill_switch", {"on": on, "actor": actor, "reason": reason})

    # The server itself; None for what it does not show to this user.

    def server_time_ms(self) -> int:
        """Give the server's clock: an answer of the library, so no permission beyond it is needed."""
        return int(self._call("clock", {})["at"])

    def strange_keys(self) -> replies.StrangeKeys:
        """Go through the server's keys; gives those of this queue that have another type, or are of version 1.

        It reads about 500 keys a call, so it takes long on a large server and holds it up nowhere.
        """
        types = {name: kind.value for name, kind in keys.TYPES.items()}
        found, cursor = replies.StrangeKeys(), "0"
        while True:
            page = self._call("wrong_types", {"cursor": cursor, "types": types, "families": keys.families()})
            found, cursor = found.more(page), str(page["cursor"])
            if cursor == "0":
                return found

    def server_info(self) -> Mapping[str, str] | None:
        """Give all of INFO as text."""
        found = self._shown("INFO", "everything")
        return {str(name): str(value) for name, value in found.items()} if isinstance(found, Mapping) else None

    def server_config(self, names: Sequence[str]) -> Mapping[str, str] | None:
        """Give what CONFIG GET has of these names."""
        found = self._shown("CONFIG GET", *names)
        return {str(name): str(value) for name, value in found.items()} if isinstance(found, Mapping) else None

    def server_libraries(self) -> tuple[str, ...] | None:
        """Give the names of the function libraries that are loaded."""
        found = self._shown("FUNCTION LIST")
        if not isinstance(found, list):
            return None
        return tuple(str(dict(zip(one[::2], one[1::2], strict=True))["library_name"]) for one in found)

    def library_by_primary(self) -> Mapping[str, str | None] | None:
        """Give, by host and port, what `loaded_library` is on each primary of a cluster, or None where it isn't known.

        That is one that does not answer, or does not show it. Empty where the settings name no cluster's nodes.
        """
        try:
            return self._server.run_on_primaries(library_of, all_of_them=False)
        except redis.exceptions.ResponseError:
            return None
        except redis.exceptions.RedisError as error:
            raise translated(error) from error

    def replace_library(self, actor: str, reason: str) -> tuple[str, str, bool]:
        """Put this version's code in the place of what each primary has under the same name.

        Every queue of the server runs the new code. Gives both digests, and whether this queue's gate log has all that
        was done: a queue that is not open has none. Raises StoreUnavailable where a primary did not answer, after it
        has been done on the others; to be repeated then.
        """
        now = functions.digest_of(functions.library())
        replaced: set[str] = set()

        def replace(client: redis.Redis) -> None:
            was = library_of(client)
            if was != now:
                client.function_load(functions.library(), replace=True)
                replaced.add(was or "none")

        try:
            self._server.run_on_primaries(replace, all_of_them=True)
        except redis.exceptions.RedisError as error:
            self._note_replaced(replaced, now, actor, reason)
            raise translated(error) from error
        return ", ".join(sorted(replaced)) or now, now, self._note_replaced(replaced, now, actor, reason)

    def _note_replaced(self, replaced: set[str], now: str, actor: str, reason: str) -> bool:
        if not replaced:
            return True
        was = ", ".join(sorted(replaced))
        body = self._call("library_replaced", {"was": was, "now": now, "actor": actor, "reason": reason})
        return bool(body["answer"] == Answer.MOVED)
