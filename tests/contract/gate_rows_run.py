"""Run rows on a real server, many queues side by side, and say how each differs from what `transition` expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

import redis

from sluicegate import keys
from sluicegate.errors import StoreRejected
from sluicegate.gate import DrainState, GateState, Stored
from sluicegate.gate_events import Event, HandEdit, Happening
from sluicegate.settings import Contract
from sluicegate.store import Store
from sluicegate.transition import Transition, transition
from tests.contract.gate_rows_doorway import Answers, Doorway, details_for
from tests.contract.gate_rows_reading import Entry, Reading, answers, ask, reading
from tests.contract.gate_rows_storage import (
    EARLIER_US,
    RUN_ID,
    Details,
    Storage,
    epoch_of,
    without_record,
)
from tests.gate_events import Rule, describe_event, describe_state

_BATCH = 250
Pair = tuple[int, GateState, Event]


@dataclass(frozen=True, slots=True)
class Case:
    """Hold one row as it is run: what is written, what happens, and what must come of it."""

    number: int
    before: GateState
    event: Event
    details: Details
    expected: Transition

    @classmethod
    def of(cls, pair: Pair, rule: Rule, limit_grace_ms: int) -> Case:
        number, before, event = pair
        details = details_for(event, number, limit_grace_ms)
        # Where the record of the last move is gone, nobody can know what it said.
        if before.stored is Stored.UNREADABLE and details.damage.fatal:
            before = without_record(before)
        return cls(number, before, event, details, rule(before, event))


@dataclass(frozen=True, slots=True)
class Runner:
    """Run rows on one server, whose database is emptied again and again, and compare them with what `rule` says."""

    client: redis.Redis
    contract: Contract
    rule: Rule = transition

    def differences(self, pairs: Iterable[Pair]) -> Iterator[str]:
        """Yield a line for every row that ends elsewhere or answers otherwise."""
        grace_ms = round(self.contract.timings.limit_grace_s * 1000)
        cases = (Case.of(pair, self.rule, grace_ms) for pair in pairs)
        while batch := list(islice(cases, _BATCH)):
            yield from self._run(batch)

    def _run(self, batch: Sequence[Case]) -> Iterator[str]:
        self.client.flushdb()
        now_ms = self._now_ms()
        doors = [Doorway(self.client, Store(self.client, f"r{case.number}"), self.contract) for case in batch]
        self._see_later(batch, doors, now_ms)
        self._write(batch, doors, now_ms)
        heard = [self._perform(case, door, now_ms) for case, door in zip(batch, doors, strict=True)]
        for case, door, answered, seen in zip(batch, doors, heard, self._read(doors, now_ms), strict=True):
            for complaint in compare(case, answered, seen, epoch_of(now_ms)):
                yield f"{describe_state(case.before)} + {describe_event(case.event)} [{door.store.queue}]: {complaint}"

    def _perform(self, case: Case, door: Doorway, now_ms: int) -> Answers | str:
        try:
            return door.perform(case.before, case.event, case.details, epoch_of(now_ms), now_ms)
        except StoreRejected as error:
            return str(error)

    def _now_ms(self) -> int:
        seconds, micros = self.client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def _see_later(self, batch: Sequence[Case], doors: Sequence[Doorway], now_ms: int) -> None:
        """Let the stores of states that have fallen behind see the epoch that is lost."""
        for case, door in zip(batch, doors, strict=True):
            if case.before.behind:
                self.client.set(door.store.keys(keys.EPOCH), str(epoch_of(now_ms) + EARLIER_US))
                door.store.observe()

    def _write(self, batch: Sequence[Case], doors: Sequence[Doorway], now_ms: int) -> None:
        storage = Storage(self.contract)
        with self.client.pipeline(transaction=False) as pipe:
            for case, door in zip(batch, doors, strict=True):
                storage.write(pipe, door.store.keys, case.before, case.details, now_ms)
                door.prepare(pipe, case.before, case.event, case.details, now_ms)
            pipe.execute()

    def _read(self, doors: Sequence[Doorway], now_ms: int) -> Iterator[Reading]:
        with self.client.pipeline(transaction=False) as pipe:
            for door in doors:
                ask(pipe, door.store.keys)
            parts = list(answers(pipe.execute(raise_on_error=False)))
            for door, part in zip(doors, parts, strict=True):
                pipe.hgetall(door.store.keys.run(part[3] if isinstance(part[3], str) else RUN_ID))
            runs: list[Any] = pipe.execute()
        second_ms = round(self.contract.timings.second_drain_s * 1000)
        for door, part, run in zip(doors, parts, runs, strict=True):
            yield reading(part, run, door.store.epoch_seen, now_ms, second_ms)


def compare(case: Case, answered: Answers | str, seen: Reading, epoch: int) -> Iterator[str]:
    """Yield what differs: the answer, each field of the state, and what holds for every move."""
    expected = case.expected
    if isinstance(answered, str):
        yield f"raised {answered[:300]}"
    elif expected.answer not in answered:
        yield f"answered {'/'.join(sorted(answered))}, not {expected.answer}"
    unread = seen.unread | {"behind", "raw", "raw_admission"} if expected.state.stored is not Stored.OK else frozenset()
    for each in fields(GateState):
        wanted, got = getattr(expected.state, each.name), getattr(seen.state, each.name)
        if wanted != got and each.name not in unread:
            yield f"{each.name} is {got}, not {wanted}"
    if not isinstance(case.event, HandEdit | Happening) or case.event is Happening.INIT:
        yield from _moves(case, seen, 0 if case.before.stored is Stored.UNINITIALISED else epoch)


def _moves(case: Case, seen: Reading, epoch: int) -> Iterator[str]:
    """Yield what the log of moves and the epoch get wrong."""
    moves = [entry for entry in seen.log if int(entry["epoch"]) > epoch]
    if _moved(case) and not moves:
        yield "the gate moved without a line in its log"
    if not moves:
        if seen.epoch is not None and seen.epoch > epoch:
            yield "the epoch rose without a line in the log"
        return
    # Acknowledging duplicates is told there too, and moves nothing.
    moves = [entry for entry in moves if entry["reason"] != "operator_acknowledge"]
    if not moves:
        return
    epochs = [int(entry["epoch"]) for entry in moves]
    if sorted(set(epochs)) != epochs or epochs[-1] != seen.epoch:
        yield f"the log's epochs are {epochs}, the gate's is {seen.epoch}"
    states = [_read_before(case), *(entry["to"] for entry in moves)]
    if [entry["from"] for entry in moves] != states[:-1] or states[-1] != seen.record.get("drain_state"):
        yield f"the log goes {[(entry['from'], entry['to']) for entry in moves]}"
    if not all(entry["reason"] and entry["actor"] for entry in moves):
        yield "a line of the log names no reason or no actor"
    if seen.raw != _mirrored(seen.record):
        yield f"after a move the raw keys are {seen.raw}"


def _moved(case: Case) -> bool:
    """Say whether the expected state needs a gate move: ending a run or acknowledging duplicates does not."""
    silent: dict[str, Any] = {"run": None, "rolling_back": False, "duplicates": False, "audited": False}
    before, after = replace(case.before, **silent), replace(case.expected.state, **silent)
    return before != after


def _read_before(case: Case) -> str:
    readable = case.before.stored is Stored.OK
    return case.before.drain_state.value if readable else DrainState.DRAIN.value


def _mirrored(record: Entry) -> tuple[str | None, str]:
    return record.get("drain_state"), "open" if record.get("drain_state") == DrainState.ADMIT else "closed"
