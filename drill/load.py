"""The drill's load: jobs at an even rate with a seeded mix, submitted like any producer's, each answer kept."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from sluicegate.admission import Decision
from sluicegate.errors import StoreError


@dataclass(frozen=True, slots=True)
class LoadShape:
    """Hold the rate in jobs/s, the mix as shares that add up to 1, and the seed that makes it repeat."""

    rate_per_s: float
    mix: Mapping[str, float]
    seed: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Hold one job before it is submitted."""

    job_class: str
    key: str
    payload: str


@dataclass(frozen=True, slots=True)
class Submission:
    """Hold a submitted job and its answer; at_ms is Unix time."""

    at_ms: int
    ask: Ask
    decision: Decision


class Submit(Protocol):
    """Be what takes a job and decides."""

    def __call__(self, ask: Ask, /) -> Decision: ...


def asks(shape: LoadShape) -> Iterator[Ask]:
    """Yield jobs without end: the same seed gives the same classes and keys in the same order."""
    rng = random.Random(shape.seed)
    classes, shares = list(shape.mix), list(shape.mix.values())
    for number in count(1):
        job_class = rng.choices(classes, shares)[0]
        payload = json.dumps({"prompt": f"{job_class} number {number}"})
        yield Ask(job_class, f"drill:{shape.seed}:{number}", payload)


class Load:
    """Submit from a thread of its own until stopped; open loop: a slow answer does not slow the rate down."""

    def __init__(self, shape: LoadShape, submit: Submit, now_ms: Callable[[], int] | None = None) -> None:
        self._shape = shape
        self._submit = submit
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._submissions: list[Submission] = []
        self._errors: list[str] = []

    def start(self) -> None:
        """Begin to submit."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the submission under way; safe twice and before start."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def running(self) -> bool:
        """Tell whether it still submits."""
        return self._thread.is_alive() and not self._stopping.is_set()

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """Return every submission so far, oldest first."""
        return tuple(self._submissions)

    @property
    def errors(self) -> tuple[str, ...]:
        """Return why submissions got no answer at all, oldest first."""
        return tuple(self._errors)

    def counts(self) -> Counter[str]:
        """Count the answers: `accepted`, or the reason of the refusal."""
        return Counter(_outcome(submission.decision) for submission in self.submissions)

    def latest(self, since_ms: int) -> tuple[Submission, ...]:
        """Return the submissions since then, newest first."""
        found = []
        for submission in reversed(self._submissions):
            if submission.at_ms < since_ms:
                break
            found.append(submission)
        return tuple(found)

    def _run(self) -> None:
        period_s = 1 / self._shape.rate_per_s
        due = time.monotonic()
        for ask in asks(self._shape):
            if self._stopping.wait(max(0.0, due - time.monotonic())):
                return
            due += period_s
            at_ms = self._now_ms()
            try:
                self._submissions.append(Submission(at_ms, ask, self._submit(ask)))
            except StoreError as error:
                self._errors.append(f"{ask.key}: {error}")


def _outcome(decision: Decision) -> str:
    return "accepted" if decision.accepted else decision.reason
