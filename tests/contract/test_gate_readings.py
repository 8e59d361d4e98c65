"""Every reachable state reads alike to the pure functions and to whoever looks, submits or claims (contract §6)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import redis

from drill.server import QueueServer
from sluicegate import keys
from sluicegate.gate import DrainState, GateState, Stored, admits, effective, effective_pin, pulls_backlog
from sluicegate.keys import Keys
from sluicegate.settings import Contract, default_settings
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.contract.gate_rows_storage import DAMAGES, EARLIER_US, RUN_ID, Details, Storage, epoch_of
from tests.contract.gate_rows_table import Table
from tests.gate_events import describe_state

BATCH = 200
RAMP_PERCENT = 10
READY, CANARY = "job-ready", "job-canary"


def key_in_share(*, inside: bool) -> str:
    """Give a key that the first share of a ramp takes, or one that it leaves out (by the hash of the key)."""
    keyed = (f"key-{number}" for number in range(1000))
    return next(key for key in keyed if (int(hashlib.sha1(key.encode()).hexdigest()[:8], 16) % 100 < 10) is inside)  # noqa: S324


INSIDE, OUTSIDE = key_in_share(inside=True), key_in_share(inside=False)


def one_each(table: Table) -> Sequence[GateState]:
    """Give one reachable state for each way a gate may read; duplicates and reopenings do not show in it."""
    found: dict[tuple[object, ...], GateState] = {}
    for row in table.rows:
        state = row.before
        written = (state.stored, state.drain_state, state.raw, state.raw_admission, state.green, state.ramp)
        found.setdefault((*written, state.behind, state.pin, state.run, state.rolling_back), state)
    return list(found.values())


@dataclass(frozen=True)
class Reader:
    """Write states into queues of one server, and look at them as our own processes do."""

    client: Any
    contract: Contract

    def differences(self, states: Sequence[GateState]) -> Iterator[str]:
        for start in range(0, len(states), BATCH):
            batch = states[start : start + BATCH]
            self.client.flushdb()
            stores = [Store(self.client, f"r{start + number}") for number in range(len(batch))]
            self._write(batch, stores, start)
            for state, store in zip(batch, stores, strict=True):
                for complaint in seen_otherwise(state, store):
                    yield f"{describe_state(state)}: {complaint}"

    def _write(self, batch: Sequence[GateState], stores: Sequence[Store], start: int) -> None:
        seconds, micros = self.client.time()
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        storage = Storage(self.contract)
        for state, store in zip(batch, stores, strict=True):
            if state.behind:
                self.client.set(store.keys(keys.EPOCH), str(epoch_of(now_ms) + EARLIER_US))
                store.observe()
        with self.client.pipeline(transaction=False) as pipe:
            for number, (state, store) in enumerate(zip(batch, stores, strict=True), start):
                details = Details(number, DAMAGES[number % len(DAMAGES)], ramp_percent=RAMP_PERCENT)
                storage.write(pipe, store.keys, state, details, now_ms)
                if state.stored is not Stored.UNINITIALISED:
                    write_ready(pipe, store.keys, now_ms)
            pipe.execute()


def write_ready(pipe: Any, at: Keys, now_ms: int) -> None:
    """Queue a ready job and a canary that waits, in the containers that a claim looks at."""
    deadline = now_ms + 60_000
    job = {
        "state": "ready", "class": "lint-fix", "declared": "lint-fix", "cost": "-", "attempt": "0", "retries": "0",
        "deadline": str(deadline), "losses": "0", "fence": "0", "rev": "1", "eligible": str(now_ms - 1000),
        "admitted_at": str(now_ms - 1000), "worker": "",
    }  # fmt: skip
    pipe.hset(at.job(READY), mapping=job)
    pipe.hset(at.job(CANARY), mapping={**job, "canary": RUN_ID})
    pipe.sadd(at(keys.PAIRS), "lint-fix:-")
    pipe.zadd(at("queue:fifo:lint-fix:-"), {READY: now_ms - 1000})
    pipe.zadd(at("queue:ready:lint-fix:-"), {READY: deadline})
    pipe.zadd(at(keys.CANARY), {CANARY: now_ms - 1000})


def seen_otherwise(state: GateState, store: Store) -> Iterator[str]:
    """Yield what observe, admit or claim see otherwise than the pure functions."""
    gate = store.observe().gate
    expected: Mapping[str, object] = {
        "drain_state": effective(state).value,
        "pin": effective_pin(state),
        "readable": state.stored is Stored.OK and not state.behind,
        "initialised": state.stored is not Stored.UNINITIALISED,
        "admission_ratio": share(state),
        "run": state.run is not None,
    }
    found = {name: getattr(gate, name) for name in expected} | {"run": gate.run is not None}
    for name, wanted in expected.items():
        if found[name] != wanted:
            yield f"observe says {name} {found[name]}, not {wanted}"
    inside, outside = (decision.reason for decision in store.admit([submission(INSIDE), submission(OUTSIDE)]))
    closed = "" if admits(state) else "admission_closed"
    if (inside, outside) != (closed, "ramp" if admits(state) and state.ramp else closed):
        yield f"a job in the share was answered {inside or 'accepted'}, one outside {outside or 'accepted'}"
    claimed = store.claim("worker-1", "request-1", 1)
    got = [job.job_id for job in claimed.jobs]
    if got != pulled(state) or claimed.drain_state != effective(state).value:
        yield f"a claim in {claimed.drain_state} got {got}, not {pulled(state)}"


def share(state: GateState) -> float:
    if not admits(state):
        return 0
    return RAMP_PERCENT / 100 if state.ramp else 1


def pulled(state: GateState) -> list[str]:
    """Give what a claim of one job takes: the oldest of the backlog, a canary, or nothing."""
    if pulls_backlog(state):
        return [READY]
    return [CANARY] if effective(state) is DrainState.RECOVERING else []


def submission(key: str) -> tuple[str | int, ...]:
    return Submission(key, "lint-fix", "{}").words()


@pytest.mark.timeout(300)
def test_every_state_reads_as_the_pure_functions_read_it(table: Table, server: QueueServer) -> None:
    states = one_each(table)
    assert len(states) > 200
    assert {effective(state) for state in states} == set(DrainState)
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        differences = list(Reader(client, default_settings().contract).differences(states))
    if differences:
        pytest.fail(f"{len(differences)} readings differ:\n" + "\n".join(differences[:20]), pytrace=False)
