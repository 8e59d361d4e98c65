"""The only doorway to Redis: one method a command, and typed answers. How a command gets there is in calls.py."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import redis

from sluicegate import functions, keys, observed, replies
from sluicegate.admission import Decision
from sluicegate.async_connection import AsyncConnection, ErrorAnswer
from sluicegate.calls import Arguments, Calls, Coming, Words, flat, translated
from sluicegate.errors import StoreError, StoreRejected
from sluicegate.telemetry import Telemetry

# A queue without stored settings names no time to come back; this is the default of closed_retry_s.
_CLOSED_RETRY_S = 30.0
# Records that a call is asked for.
_MOST_RECORDS = 100


class Store(Calls):
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

    # Jobs.

    def admit(self, jobs: Sequence[Words]) -> tuple[Decision, ...]:
        """Decide a batch of at most 100 submissions in order; each as `Submission.words` renders it."""
        return self._decided(jobs, self._hot("admit", [word for job in jobs for word in job]))

    def async_connection(self) -> AsyncConnection | None:
        """Give a connection for `admit_async`, which its owner closes, or None where there is no such connection."""
        return self._server.async_connection()

    async def admit_async(self, connection: AsyncConnection | None, jobs: Sequence[Words]) -> tuple[Decision, ...]:
        """Do what `admit` does without holding the event loop up; answers and failures are the same."""
        if connection is not None and not (self._read_only or self._function_forbidden):
            try:
                answer = await connection.ask(self._call_of("admit", [word for job in jobs for word in job]))
                return self._decided(jobs, flat("admit", answer))
            except ErrorAnswer:
                pass  # No such function, or none for this user, or no memory: the other way knows what to do or to say.
            except redis.exceptions.RedisError as error:
                raise translated(error) from error
        return await asyncio.to_thread(self.admit, jobs)

    def _decided(self, jobs: Sequence[Words], answer: list[Any]) -> tuple[Decision, ...]:
        self._saw(int(answer[0]))
        if len(answer) == 1:
            return tuple(Decision(False, str(job[0]), "admission_closed", _CLOSED_RETRY_S) for job in jobs)
        return replies.admissions([str(job[0]) for job in jobs], answer)

    def claim(self, worker: str, request: str, slots: int, version: str = "") -> replies.Claimed:
        """Take up to `slots` jobs and confirm the gate's epoch; the same request id gives the same jobs."""
        claimed = replies.Claimed.of(self._hot("claim", (worker, request, slots, version)))
        self._saw(claimed.epoch)
        return claimed

    def intent(self, worker: str, job_id: str, fence: int) -> str:
        """Record that a side effect may follow; gives go, stop (the gate says no) or stale."""
        return self.intents(worker, [(job_id, fence)])[0]

    def intents(self, worker: str, starts: Sequence[tuple[str, int]]) -> tuple[str, ...]:
        """Record the intents of at most 100 starts, each a job id with its fence; gives an answer for each."""
        answer = self._hot("intent", [worker, *(word for start in starts for word in start)])
        self._saw(int(answer[1]))
        return tuple(answer[2:])

    def settle(self, arguments: Arguments) -> replies.Settled:
        """End a worker's hold on a job (see settle.lua).

        Arguments: worker, id, fence, request and outcome, and where there are any delay_ms, cause, reference and call
        with its kind and latency_ms.
        """
        return self.settle_many(arguments["worker"], [arguments])[0]

    def settle_many(self, worker: str, settlements: Sequence[Arguments]) -> tuple[replies.Settled, ...]:
        """End a worker's holds on at most 100 jobs, each by itself, in order; arguments as in `settle`."""
        words = [word for settlement in settlements for word in _settlement_words(settlement)]
        ids = [settlement["id"] for settlement in settlements]
        return replies.settlements(ids, self._hot("settle", [worker, *words]))

    def renew(self, worker: str, leases: Mapping[str, int]) -> replies.Renewed:
        """Renew at most 100 leases by job id → fence; gives the ids that are no longer this worker's."""
        words = [word for job_id, fence in leases.items() for word in (job_id, fence)]
        renewed = replies.Renewed.of(self._hot("renew", [worker, *words]))
        self._saw(renewed.epoch)
        return renewed

    def hello(self, worker: str, version: str = "", report: str | None = None) -> str:
        """Say that a worker lives, with its stop report if it has one; gives the effective gate."""
        arguments: dict[str, Any] = {"worker": worker, "version": version}
        if report is not None:
            arguments["report"] = report
        return str(self._call("hello", arguments)["drain_state"])

    def goodbye(self, worker: str) -> None:
        """Forget a worker that stops by itself."""
        self._call("goodbye", {"worker": worker})

    def workers(self) -> tuple[replies.WorkerView, ...]:
        """Give the workers seen in the last minute."""
        return tuple(replies.WorkerView.of(row) for row in replies.rows(self._call("workers", {}), "workers"))

    def sweep(self, limit: int = 100) -> replies.Swept:
        """Expire overdue jobs and find leases that ran out."""
        return replies.Swept.of(self._call("sweep", {"limit": limit}))

    def promote(self, limit: int = 100) -> int:
        """Make delayed jobs ready whose time has come; gives how many."""
        return int(self._call("promote", {"limit": limit})["promoted"])

    def reconcile(
        self, job_id: str, outcome: str, *, actor: str, reason: str, source: str, fence: str | None = None
    ) -> tuple[str, str]:
        """Move a job out of unknown or blocked; gives the answer (moved, refused, gone, stale) and its state.

        `fence` is the one seen by whoever judged from a look at the job: after another start the judgement is stale.
        """
        arguments = {"id": job_id, "outcome": outcome, "actor": actor, "reason": reason, "source": source}
        if fence is not None:
            arguments["fence"] = fence
        body = self._call("reconcile", arguments)
        return str(body["answer"]), str(body["state"])

    def confirm_duplicate(self, key: str, *, actor: str, note: str) -> None:
        """Record that provider or ledger shows two effects for one key."""
        self._call("duplicate", {"key": key, "actor": actor, "note": note})

    def job(self, job_id: str) -> Mapping[str, Any] | None:
        """Give one job's record, payload, ledger entry and decision, or None."""
        body = self._call("job", {"id": job_id})
        return body if body["found"] else None

    def list_jobs(self, state: str, limit: int = 100) -> tuple[str, ...]:
        """Give the ids in a state's container, oldest first."""
        return tuple(replies.rows(self._call("list", {"state": state, "limit": limit}), "ids"))

    def failures(self, date: str, offset: int = 0, limit: int = 1000) -> tuple[str, ...]:
        """Give the JSON lines of failed:{date} (UTC, YYYY-MM-DD) from `offset` on, oldest first."""
        body = self._call("failures", {"date": date, "offset": offset, "limit": limit})
        return tuple(replies.rows(body, "lines"))

    def wait_for_work(self, timeout_s: float) -> bool:
        """Block on the wake key for at most `timeout_s`; gives whether something may have changed."""
        try:
            woken = self._server.run(lambda client: client.blpop([self.keys(keys.WAKE)], timeout=timeout_s))
        except redis.exceptions.RedisError as error:
            raise translated(error) from error
        return woken is not None

    # Runs.

    def open_run(self, arguments: Arguments) -> replies.GateAnswer:
        """Ask for a run (see run.lua for the arguments)."""
        return replies.GateAnswer.of(self._call("open_run", arguments))

    def asked(self, runbook: str, keep_ms: int) -> replies.Asked:
        """Say what asking for a run would come to; reads, and writes nothing."""
        return replies.Asked.of(self._call("asked", {"runbook": runbook, "keep_ms": keep_ms}))

    def claim_run(self, executor: str, run: str, fence: str, beside: str = "") -> replies.RunClaim:
        """Own the live run that holds the lock, or the one of the runbook `beside`; or renew the ownership."""
        arguments = {"executor": executor, "run": run, "fence": fence, "beside": beside}
        return replies.RunClaim.of(self._call("claim_run", arguments))

    def commit_step(self, arguments: Arguments) -> replies.StepAnswer:
        """Make one effect of a run and its journal entry, under the fence (see run.lua for the arguments)."""
        return replies.StepAnswer.of(self._call("commit_step", arguments))

    def approve(self, run: str, step: str, *, actor: str, reason: str) -> str:
        """Give a person's word for the step that waits for it; moved, unchanged, not_waiting or gone."""
        return str(self._call("approve", {"run": run, "step": step, "actor": actor, "reason": reason})["answer"])

    def abort_beside(self, run: str, *, actor: str, reason: str) -> str:
        """End a run that holds no lock, as a named person; moved or gone."""
        return str(self._call("abort_beside", {"run": run, "actor": actor, "reason": reason})["answer"])

    def hold(self, run: str, hold_s: float | None, *, actor: str, reason: str) -> tuple[str, int]:
        """Hold a live recovery, for as long as the contract allows without a time; gives moved, gone or unreadable.

        The second is until when (ms, Redis TIME).
        """
        wanted_ms = 0 if hold_s is None else max(1, round(hold_s * 1000))
        body = self._call("hold", {"run": run, "ms": wanted_ms, "actor": actor, "reason": reason})
        return str(body["answer"]), int(body.get("until", 0))

    def resume(self, run: str, *, actor: str, reason: str) -> str:
        """Let a held run go on; moved, unchanged (it is not held), expired (it rolls back), gone or unreadable."""
        return str(self._call("resume", {"run": run, "actor": actor, "reason": reason})["answer"])

    def run(self, run: str) -> replies.RunHistory | None:
        """Give a run with its journal and approvals, or None."""
        body = self._call("run", {"run": run})
        if not body["found"]:
            return None
        journal = tuple(replies.JournalEntry.of(entry) for entry in replies.rows(body, "journal"))
        return replies.RunHistory(replies.RunRecord.of(body["run"]), journal, body.get("approvals") or {})

    def runs(self, limit: int = 20) -> tuple[replies.RunRecord, ...]:
        """Give the newest runs, newest first."""
        return tuple(replies.RunRecord.of(run) for run in replies.rows(self._call("runs", {"limit": limit}), "runs"))

    def endpoint(self) -> str:
        """Give the provider that the workers are pointed at; empty for the one of their own settings."""
        return str(self._call("endpoint", {})["current"])

    # Alerts.

    def notify(self, source: str, group: str, alerts: Sequence[Arguments]) -> replies.Notified:
        """Keep one notification and open, touch or close its episodes (see episode.lua); at most 100 alerts."""
        kept = self.notify_many([(source, group, [alerts])])[0]
        if isinstance(kept, StoreError):
            raise kept
        return kept[0]

    def notify_many(
        self, notifications: Iterable[tuple[str, str, Iterable[Sequence[Arguments]]]]
    ) -> tuple[tuple[replies.Notified, ...] | StoreError, ...]:
        """Keep notifications, all on their way at once: one wait for the disk. Gives what came of each.

        A notification is its source, its group and its alerts in parts of at most 100.
        """
        coming: list[list[Coming]] = []
        try:
            for source, group, batches in notifications:
                coming.append([])
                for alerts in batches:
                    body = {"source": source, "group": group, "alerts": list(alerts)}
                    coming[-1].append(self._begin("notify", body))
            return tuple(self._kept(parts) for parts in coming)
        finally:
            for one in chain.from_iterable(coming):
                one.abandon()

    def _kept(self, parts: Sequence[Coming]) -> tuple[replies.Notified, ...] | StoreError:
        try:
            return tuple(replies.Notified.of(self._answered("notify", one)) for one in parts)
        except StoreError as error:
            return error

    def episodes(self) -> tuple[replies.Episode, ...]:
        """Give the open episodes, oldest first."""
        return tuple(replies.Episode.of(row) for row in replies.rows(self._call("episodes", {}), "episodes"))

    def episodes_looked(self, looks: Sequence[tuple[str, str, str]]) -> frozenset[str]:
        """Keep what looks at open episodes came to, each an id, the outcome and a run; gives the ids it is news of."""
        rows = [{"id": episode, "outcome": outcome, "run": run} for episode, outcome, run in looks]
        return frozenset(replies.rows(self._call("episodes_looked", {"looks": rows}), "changed"))

    def reconcile_log(self, limit: int = 100, kind: str = "") -> tuple[Mapping[str, str], ...]:
        """Give reconcile records, duplicates and late writes, newest first."""
        return tuple(replies.rows(self._call("reconcile_log", {"limit": limit, "kind": kind}), "entries"))

    # Snapshot.

    def snapshot_head(self) -> Mapping[str, Any]:
        """Give all that a snapshot holds beside jobs and refusals (see snapshot.lua)."""
        return self._call("snapshot", {})

    def snapshot_rows(self, container: str) -> Iterator[list[replies.Values]]:
        """Give the records of a container, a range after the other; while one is used, the next is on its way.

        Each record is an id with its score, its version, and its line of the file without the kind.
        """
        return self._walked("snapshot_rows", container, 4)

    def snapshot_versions(self, container: str) -> Iterator[list[replies.Values]]:
        """Give the ids of a container with scores and versions, a range after the other, in the same way."""
        return self._walked("snapshot_versions", container, 3)

    def _walked(self, command: str, container: str, width: int) -> Iterator[list[replies.Values]]:
        answer = self._hot(command, (container, "", ""))
        while answer[0]:
            coming = self._start(command, (container, answer[0], answer[1]))
            try:
                yield replies.values(answer[2:], width)
            except BaseException:
                coming.abandon()
                raise
            answer = coming.answer()

    def snapshot_refusals(self, horizon_ms: int, after: Arguments | None = None) -> Mapping[str, Any]:
        """Give the next refusals that lapse by `horizon_ms`, and where to go on."""
        return self._call("snapshot_refusals", _ranged(after, horizon=horizon_ms))

    def records(self, ids: Sequence[str]) -> Mapping[str, Any]:
        """Give the records of jobs, in whatever state they are, in as many calls as their payloads need."""
        jobs: list[Any] = []
        left = list(ids)
        while left:
            body = self._call("records", {"ids": left[:_MOST_RECORDS]})
            jobs += replies.rows(body, "jobs")
            # A library from before the bound on payloads has looked at all of them.
            left = left[int(body.get("looked", _MOST_RECORDS)) :]
        return {"jobs": jobs}

    def restore_begin(self, arguments: Arguments) -> Mapping[str, Any]:
        """Close the gate and mark it as restoring (see restore.lua), on a server that may not know the library yet."""
        self.load()
        return self._call("restore_begin", arguments)

    def restore(self, parts: Iterable[Words]) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Put parts of a snapshot back, in order (see restore.lua for the words of a part).

        Gives what became of each; while it is decided upon, the next part is made.
        """
        under_way: Coming | None = None
        try:
            for part in parts:
                if under_way is not None:
                    yield replies.put_back(under_way.answer())
                under_way = self._start("restore", part)
            if under_way is not None:
                yield replies.put_back(under_way.answer())
        except BaseException:
            if under_way is not None:
                under_way.abandon()
            raise

    def restore_end(self, restore: str, *, actor: str, note: str) -> str:
        """Take the mark away: all is back; gives moved or unchanged."""
        return str(self._call("restore_end", {"restore": restore, "actor": actor, "note": note})["answer"])

    def unresolved(self, offset: int = 0, limit: int = 100) -> Mapping[str, Any]:
        """Give unknown jobs with what a resolver needs, the longest unknown first (see unresolved.lua)."""
        return self._call("unresolved", {"offset": offset, "limit": limit})

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

    def replace_library(self, actor: str, reason: str) -> tuple[str, str]:
        """Put this version's code in the place of what the server has under the same name; gives both digests.

        It is written to this queue's gate log, where there is one; every queue of the server runs the new code.
        """
        was, now = self.loaded_library() or "none", functions.digest_of(functions.library())
        if was != now:
            try:
                self._server.run_on_primaries(
                    lambda client: client.function_load(functions.library(), replace=True), all_of_them=True
                )
            except redis.exceptions.RedisError as error:
                raise translated(error) from error
            self._call("library_replaced", {"was": was, "now": now, "actor": actor, "reason": reason})
        return was, now


def _settlement_words(settlement: Arguments) -> Words:
    call: Arguments = settlement.get("call") or {}
    return (
        settlement["id"],
        settlement["fence"],
        settlement["request"],
        settlement["outcome"],
        settlement.get("delay_ms", 0),
        call.get("kind", ""),
        call.get("latency_ms", ""),
        settlement.get("cause", ""),
        settlement.get("reference", ""),
    )


def _ranged(after: Arguments | None, **arguments: str | int) -> Arguments:
    return arguments if after is None else {**arguments, "after": dict(after)}
