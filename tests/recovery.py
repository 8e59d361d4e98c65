"""The executor of a run, as far as workers depend on it."""

from __future__ import annotations

import itertools
from typing import Any

from sluicegate.job import CallKind, Job, Outcome
from tests.queues import OpenQueue


class Recovery:
    """Open a run by name and commit its steps."""

    def __init__(self, queue: OpenQueue) -> None:
        self._queue = queue
        self._numbers = itertools.count(1)
        opening = {
            "runbook": "drain-and-recover",
            "trigger": "person",
            "run": "run-1",
            "actor": "ada",
            "reason": "test",
        }
        assert queue.store.open_run({**opening, "confirmed": True, "digest": "", "episode": ""}).answer == "moved"
        self._fence = queue.store.claim_run("e1", "", "").fence

    def step(self, effect: str, **fields: Any) -> str:
        """Commit one effect and give its answer."""
        number = next(self._numbers)
        base = {"executor": "e1", "run": "run-1", "fence": self._fence, "request": f"q{number}", "effect": effect}
        words = {"seq": number, "verb": effect, "phase": "done", "text": "", "detail": "{}"}
        return self._queue.store.commit_step({**base, **words, **fields}).answer

    def put_canary(self, n: int, job_class: str = "lint-fix") -> str:
        """Put a canary in and give its id."""
        assert self.step("canary", **{"class": job_class, "n": n, "payload": "{}"}) == "moved"
        return f"canary:run-1:{job_class}:{n}"

    def canary(self, n: int) -> Job:
        """Put a canary in and claim it."""
        self.put_canary(n)
        return self._queue.claimed()

    def green(self) -> None:
        """Settle as many good canaries as it takes."""
        for n in range(self._queue.contract.canaries_required):
            self._queue.settle(self.canary(n), Outcome.SUCCEEDED, kind=CallKind.OK)
