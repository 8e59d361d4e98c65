"""Send commands to a real queue, keep the model beside it, and check everything after each."""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from sluicegate.admission import Decision
from sluicegate.contract import Contract
from sluicegate.restore import Wish, restore
from sluicegate.snapshot import write_snapshot
from sluicegate.store import Store
from tests.machine.census import Census
from tests.machine.clock import KEY, Clock, with_clock
from tests.machine.commands import Command
from tests.machine.comparison import compare
from tests.machine.dump import Dump, Reader
from tests.machine.gate import Gate, read_gate
from tests.machine.laws import Change, contract_of, hold, hold_restored
from tests.machine.restoring import restored
from tests.machine.world import World, finish

_PAUSE_MS = 10_000


@dataclass
class Lab:
    """Hold one server with the library under test, and the census of all that was run on it."""

    client: Any
    folder: Path
    census: Census = field(default_factory=Census)

    @classmethod
    def on(cls, url: str, source: str) -> Lab:
        client: Any = redis.Redis.from_url(url, decode_responses=True)
        client.function_load(with_clock(source), replace=True)
        return cls(client, Path(tempfile.mkdtemp()))

    def close(self) -> None:
        self.client.close()
        shutil.rmtree(self.folder)


class Driver:
    """Run commands on a queue that is opened anew."""

    def __init__(self, lab: Lab, contract: Contract) -> None:
        self._client, self._census, self._folder = lab.client, lab.census, lab.folder
        self._client.flushall()
        self.clock = Clock(self._client)
        self._reader = Reader(self._client)
        # One store each racing caller; each remembers the highest epoch it has seen.
        self._stores = (Store(self._client, "default"), Store(self._client, "default"))
        answer = self._stores[0].init_queue(contract.for_redis(), contract.digest(), "ada", "a test")
        assert answer.answer == "moved"
        self.dump = self._read()
        self.world = World(contract_of(self.dump), gate=read_gate(self.dump), now_us=self.clock.now_us)

    @property
    def gate(self) -> Gate:
        return self.world.gate

    def run(self, command: Command) -> Any:
        """Send a command, and give its answer once everything has been checked."""
        self._begin()
        answer = command.send(self._stores[0])
        after = self._read()
        command.expect(self.world, answer)
        self._check(after, (self.gate,))
        self._count(command, answer)
        return answer

    def race(self, first: Command, second: Command) -> tuple[Any, Any]:
        """Send two commands at once; what comes out must be that of one order or of the other."""
        self._begin()
        answers = _at_once(self._client, (first, second), self._stores)
        after = self._read()
        gates = (self.gate, read_gate(after))
        self.world = self._in_an_order((first, second), answers, gates)
        self._check(after, gates)
        for command, answer in zip((first, second), answers, strict=True):
            self._count(command, answer)
        self._census.commands["race"] += 1
        return answers

    def _in_an_order(
        self, commands: tuple[Command, Command], answers: tuple[Any, Any], gates: tuple[Gate, Gate]
    ) -> World:
        failures = []
        for order in ((0, 1), (1, 0)):
            world = self.world.copy()
            try:
                for place, gate in zip(order, gates, strict=True):
                    world.gate = gate
                    commands[place].expect(world, answers[place])
            except AssertionError as error:
                failures.append(str(error))
            else:
                return world
        raise AssertionError(f"two commands at once fit no order: {failures}")

    def restore(self) -> None:
        """Write a snapshot, lose the server, restore on the empty one with clients that have seen nothing."""
        self._begin()
        before, path = self.dump, self._folder / "snapshot.jsonl.gz"
        write_snapshot(self._stores[0], path)
        self._client.flushdb()
        self.world = restored(self.world)
        self.clock.begin_again({f"job:{key}": one.ends_at for key, one in self.world.decisions.items()})
        self._reader = Reader(self._client)
        self._stores = (Store(self._client, "default"), Store(self._client, "default"))
        answer = restore(self._stores[0], Wish(path, "ada", "the server was lost"))
        assert answer.answer == "clean", answer
        self.dump = self._read()
        self.world.gate = read_gate(self.dump)
        hold_restored(Change(before, self.dump, (self.gate,), self.clock.now_ms, self.world.contract))
        compare(self.world, self.dump, self.clock)
        self._census.commands["restore"] += 1

    def wait(self, ms: int) -> None:
        """Let time pass; what has outlived its retention is gone, and nothing else."""
        self._census.commands["wait"] += 1
        self.clock.wait(ms)
        self.world.now_us = self.clock.now_us
        self.world.forget()
        self._check(self._read(), (self.gate,))

    def edit(self, *words: str) -> None:
        """Write a key by hand, as anybody with a plain client can."""
        self._census.commands["hand_edit"] += 1
        self._client.execute_command(*words)
        self.dump = self._read()
        self.world.gate = read_gate(self.dump)

    def count(self, kind: str) -> None:
        self._census.commands[kind] += 1

    def _begin(self) -> None:
        self.clock.step()
        self.world.now_us = self.clock.now_us
        self.world.forget()

    def _read(self) -> Dump:
        dump = self._reader.read()
        dump.hashes.pop(KEY, None)
        self.clock.look(dump)
        return dump

    def _check(self, after: Dump, gates: tuple[Gate, ...]) -> None:
        before, self.dump = self.dump, after
        self.world.gate = read_gate(after)
        self._follow_cancelled(after)
        hold(Change(before, after, gates, self.clock.now_ms, self.world.contract))
        compare(self.world, after, self.clock)
        self.world.records.clear()

    def _follow_cancelled(self, after: Dump) -> None:
        """A gate move that ends a proof cancels the canaries that wait, and no other move does."""
        for job in [job for job in self.world.jobs.values() if job.canary and job.state == "ready"]:
            stored = after.jobs.get(job.job_id, {})
            if stored.get("cause") == "cancelled":
                assert not (self.gate.takes_canaries and self.gate.run == job.canary), f"{job.job_id} was cancelled"
                finish(self.world, job, "failed", "cancelled")

    def _count(self, command: Command, answer: Any) -> None:
        self._census.commands[command.kind] += 1
        if command.kind == "admit":
            self._count_refusals(answer)
        if command.kind in ("settle", "intent", "reconcile", "order", "commit_step", "open_run", "approve"):
            said = answer if isinstance(answer, str) else answer[0] if isinstance(answer, tuple) else answer.answer
            self._census.seen[f"{command.kind} {said}"] += 1

    def _count_refusals(self, decisions: tuple[Decision, ...]) -> None:
        for decision in decisions:
            # A conflict is never stored, so each is a decision of its own.
            if not decision.accepted and (not decision.replayed or decision.reason == "conflict"):
                self._census.refusals[decision.reason] += 1
            elif decision.replayed:
                self._census.seen[f"admit replayed {decision.reason or 'acceptance'}"] += 1


def _at_once(client: Any, commands: tuple[Command, Command], stores: tuple[Store, Store]) -> tuple[Any, Any]:
    """Send two commands from two threads while the server holds writers back, so that both are under way at once.

    The server takes up those it held back in their order, so a run that is repeated goes the same way.
    """
    client.client_pause(_PAUSE_MS, all=False)
    try:
        with ThreadPoolExecutor(2) as pool:
            futures = []
            for command, store in zip(commands, stores, strict=True):
                futures.append(pool.submit(command.send, store))
                _until_held_back(client, len(futures))
            client.client_unpause()
            return futures[0].result(), futures[1].result()
    finally:
        client.client_unpause()


def _until_held_back(client: Any, count: int) -> None:
    end = time.monotonic() + _PAUSE_MS / 2000
    while client.info("clients")["blocked_clients"] < count:
        assert time.monotonic() < end, f"the server holds back fewer than {count} clients"
