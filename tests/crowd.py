"""A queue with many jobs, whose clock is the test's; its figures must always be those of its records."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import redis

from sluicegate import functions
from sluicegate.job import Job
from sluicegate.settings import Contract
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.brute_force import BruteForce, Page, differences, read_plainly
from tests.exported import page_of
from tests.machine.clock import Clock, with_clock
from tests.machine.figures import ClockedReader
from tests.queues import open_with


class Crowd:
    """Hold a queue with many jobs of several classes, whose clock is ours; its figures are compared at will."""

    def __init__(self, url: str, contract: Contract) -> None:
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self.client.function_load(with_clock(functions.library()), replace=True)
        self.clock = Clock(self.client)
        self.store = Store(self.client, "default")
        self.contract = contract
        open_with(self.store, contract)
        self.reader = ClockedReader(self.client, url, functions.library())
        self._numbers = itertools.count()

    def submit(self, *jobs: tuple[str, int]) -> None:
        """Submit jobs of a class with so many ms to their deadline each; only a limited backlog may refuse one."""
        asked = [
            Submission(f"j{next(self._numbers)}", name, "{}", deadline_in_ms=deadline_ms) for name, deadline_ms in jobs
        ]
        decisions = self.store.admit([each.words() for each in asked])
        assert self.contract.backlog_limit or all(decision.accepted for decision in decisions), decisions

    def claim(self, slots: int, worker: str = "w1") -> Sequence[Job]:
        return self.store.claim(worker, f"r{next(self._numbers)}", slots).jobs

    def settle(self, job: Job, outcome: str = "succeeded", kind: str = "ok", delay_ms: int = 0) -> None:
        call = {"kind": kind, "latency_ms": 20}
        base = {"worker": "w1", "id": job.job_id, "fence": str(job.fence), "request": f"s{next(self._numbers)}"}
        assert self.store.settle({**base, "outcome": outcome, "delay_ms": delay_ms, "call": call}).answer == "ok"

    def wait(self, ms: int) -> None:
        self.clock.wait(ms)

    def page(self) -> Page:
        """Give the figures, which must be those of the records."""
        shown = page_of(self.reader.observe())
        assert differences(shown, BruteForce(read_plainly(self.client), self.clock.now_ms).page()) == {}
        return shown

    def unchecked(self) -> Page:
        """Give the figures of a queue that somebody damaged."""
        return page_of(self.reader.observe())

    def close(self) -> None:
        self.reader.close()
        self.client.close()
