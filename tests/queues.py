"""A queue on a real server, opened for one test, whose invariants are checked when the test is over."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

from sluicegate import functions
from sluicegate.admission import Decision
from sluicegate.job import CallKind, Job, Outcome
from sluicegate.producer import Producer
from sluicegate.replies import Claimed, Settled
from sluicegate.settings import Contract, Settings, faster, load
from sluicegate.store import Store
from tests.invariants import assert_invariants, full_record
from tests.machine.clock import Clock, with_clock

WAIT_S = 30.0

OpenQueueFunction = Callable[..., "OpenQueue"]


def contract_of(**changes: Any) -> Contract:
    """Give the drill's contract five times as fast, with further classes and without a watch on the controller.

    `timings` and `classes` are merged, everything else is replaced.
    """
    body = faster(load(None, {}), 5).contract.model_dump(mode="json")
    body["timings"]["controller_silent_s"] = 3600
    body["cost_classes"] = {"browser": {"max_running": 1}}
    body["classes"] |= {
        "send-mail": {"deadline_s": 60, "effects": "unsafe"},
        "browse": {"deadline_s": 60, "cost_class": "browser"},
    }
    for name in ("timings", "classes"):
        body[name] |= changes.pop(name, {})
    return Contract.model_validate(body | changes)


class OpenQueue:
    """Act on one open queue as a producer, a worker and an onlooker."""

    def __init__(self, url: str, contract: Contract, name: str = "default") -> None:
        self.url = url
        self.contract = contract
        self.store = Store.connect(url, name)
        self.producer = Producer(self.store)
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self._numbers = itertools.count(1)
        answer = self.store.init_queue(contract.for_redis(), contract.digest(), "ada", "a test")
        assert answer.answer == "moved"

    def close(self) -> None:
        self.store.close()
        self.client.close()

    def check(self) -> None:
        assert_invariants(self.client, self.store.keys)

    def submit(self, job_class: str = "lint-fix", payload: str = "{}", **fields: Any) -> Decision:
        return self.producer.submit(job_class, payload, **fields)

    def accepted(self, job_class: str = "lint-fix", **fields: Any) -> str:
        """Submit a job that must be accepted, and give its id."""
        decision = self.submit(job_class, **fields)
        assert decision.accepted, decision
        return decision.job_id

    def claim(self, slots: int = 1, worker: str = "w1", request: str = "", store: Store | None = None) -> Claimed:
        return (store or self.store).claim(worker, request or f"r{next(self._numbers)}", slots)

    def claimed(self, worker: str = "w1") -> Job:
        """Claim one job that must be there."""
        (job,) = self.claim(worker=worker).jobs
        return job

    def started(self, job_class: str = "lint-fix", **fields: Any) -> Job:
        """Submit a job, claim it and record its intent."""
        job_id = self.accepted(job_class, **fields)
        job = self.claimed()
        assert job.job_id == job_id
        assert self.store.intent("w1", job.job_id, job.fence) == "go"
        return job

    def settle(
        self, job: Job, outcome: Outcome, *, kind: CallKind | None = None, request: str = "", **fields: Any
    ) -> Settled:
        return self.store.settle(self.settlement(job, outcome, kind=kind, request=request, **fields))

    def settlement(
        self, job: Job, outcome: Outcome, *, kind: CallKind | None = None, request: str = "", **fields: Any
    ) -> Mapping[str, Any]:
        """Give the arguments of a settlement, by the worker and under the fence of the claim unless told otherwise."""
        call = {"call": {"kind": kind.value, "status": 0, "latency_ms": 10}} if kind is not None else {}
        request = request or f"s{next(self._numbers)}"
        base = {"worker": "w1", "id": job.job_id, "fence": str(job.fence), "request": request, "outcome": outcome.value}
        return base | call | fields

    def record(self, job_id: str) -> Mapping[str, str]:
        """Give a job's record as it is stored, with the values that are left out while they are the first ones."""
        stored: Mapping[str, str] = self.client.hgetall(self.store.keys.job(job_id))
        return full_record(job_id, stored) if stored.get("state", "refused") != "refused" else {}

    def state(self, job_id: str) -> str:
        return self.record(job_id).get("state", "gone")

    def counters(self) -> Mapping[str, int]:
        return self.store.observe().counters

    def log(self, kind: str) -> list[Mapping[str, str]]:
        """Give the reconcile log's entries of one kind, oldest first."""
        entries = self.client.xrange(self.store.keys("reconcile:log"))
        return [fields for _, fields in entries if fields["kind"] == kind]

    def sweep_until(self, holds: Callable[[], bool], what: str) -> None:
        """Sweep and promote as a worker does until a condition holds."""

        def swept() -> bool:
            self.store.sweep()
            self.store.promote()
            return holds()

        wait_until(swept, what)


class ClockedQueue(OpenQueue):
    """Act on an open queue whose functions read a clock that stands still until the test moves it."""

    def __init__(self, url: str, contract: Contract) -> None:
        plain: Any = redis.Redis.from_url(url, decode_responses=True)
        plain.function_load(with_clock(functions.library()), replace=True)
        self.clock = Clock(plain)
        super().__init__(url, contract)

    def wait(self, ms: int) -> None:
        self.clock.wait(ms)


def wait_until(holds: Callable[[], bool], what: str, within_s: float = WAIT_S) -> None:
    """Look again and again until a condition holds, and fail past the bound."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, f"{what} did not come true within {within_s:g} s"
        time.sleep(0.01)


def open_with(store: Store, contract: Contract) -> None:
    """Open the store's queue, which never was, with a contract."""
    answer = store.init_queue(contract.for_redis(), contract.digest(), "ada", "a test")
    assert answer.answer == "moved", answer


@contextmanager
def store_of(settings: Settings) -> Iterator[Store]:
    """Give a store made from settings, of a queue that it has opened with their contract."""
    made = Store.of(settings)
    open_with(made, settings.contract)
    yield made
    made.close()


@pytest.fixture
def open_queue(redis_url: str) -> Iterator[OpenQueueFunction]:
    """Return a function that opens the queue `default` on an empty server with changes to the tests' contract.

    Its invariants are checked in the end unless `checked` says that the test breaks them on purpose.
    """
    with ExitStack() as stack:

        def opened(*, checked: bool = True, **changes: Any) -> OpenQueue:
            queue = OpenQueue(redis_url, contract_of(**changes))
            stack.callback(queue.close)
            if checked:
                stack.callback(queue.check)
            return queue

        yield opened


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    """Return a plain client of an empty server, once each kind; it decodes answers."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        yield plain


OpenClockedFunction = Callable[..., ClockedQueue]


@pytest.fixture
def open_clocked(redis_url: str) -> Iterator[OpenClockedFunction]:
    """Return a function like that of `open_queue`, for a queue whose time passes only by `wait`."""
    with ExitStack() as stack:

        def opened(*, checked: bool = True, **changes: Any) -> ClockedQueue:
            queue = ClockedQueue(redis_url, contract_of(**changes))
            stack.callback(queue.close)
            if checked:
                stack.callback(queue.check)
            return queue

        yield opened


@pytest.fixture
def clocked(open_clocked: OpenClockedFunction) -> ClockedQueue:
    """Return an open queue with the tests' contract, whose time passes only by `wait`."""
    return open_clocked()


@pytest.fixture
def queue(open_queue: OpenQueueFunction) -> OpenQueue:
    """Return an open queue with the tests' contract."""
    return open_queue()
