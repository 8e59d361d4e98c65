"""The drill's jobs: at an even rate with a seeded mix, or a fixed queue of them; each answer is kept."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Protocol

from sluicegate.admission import Decision
from sluicegate.errors import SluicegateError


@dataclass(frozen=True, slots=True)
class LoadShape:
    """Hold the rate in jobs/s, the mix as shares that add up to 1, and the seed that makes it repeat."""

    rate_per_s: float
    mix: Mapping[str, float]
    seed: int


@dataclass(frozen=True, slots=True)
class Jobs:
    """Hold the queue of a scenario that brings its own: how many jobs of one class."""

    count: int
    job_class: str

    def __str__(self) -> str:
        return f"{self.count} {self.job_class} jobs"


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


class Answers:
    """Submit, and keep every submission with its answer; safe to read while another thread submits."""

    def __init__(self, submit: Submit, now_ms: Callable[[], int] | None = None) -> None:
        self._submit = submit
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._submissions: list[Submission] = []
        self._errors: list[str] = []

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

    def _ask(self, ask: Ask) -> None:
        at_ms = self._now_ms()
        try:
            self._submissions.append(Submission(at_ms, ask, self._submit(ask)))
        except SluicegateError as error:
            self._errors.append(f"{ask.key}: {error}")


class Load(Answers):
    """Submit from a thread of its own until stopped; open loop: a slow answer does not slow the rate down."""

    def __init__(self, shape: LoadShape, submit: Submit, now_ms: Callable[[], int] | None = None) -> None:
        super().__init__(submit, now_ms)
        self._shape = shape
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

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

    def _run(self) -> None:
        period_s = 1 / self._shape.rate_per_s
        due = time.monotonic()
        for ask in asks(self._shape):
            if self._stopping.wait(max(0.0, due - time.monotonic())):
                return
            due += period_s
            self._ask(ask)


class Batch(Answers):
    """Hold a fixed queue of jobs and submit each when a phase says so, as often as it says so."""

    def __init__(self, jobs: Jobs, seed: int, submit: Submit, now_ms: Callable[[], int] | None = None) -> None:
        super().__init__(submit, now_ms)
        shape = LoadShape(0, {jobs.job_class: 1.0}, seed)
        self._jobs: Sequence[Ask] = tuple(islice(asks(shape), jobs.count))

    def send(self, first: int, last: int) -> None:
        """Submit the jobs of these numbers (from 1, both included), one after the other."""
        for ask in self._jobs[first - 1 : last]:
            self._ask(ask)

    @property
    def count(self) -> int:
        """Return how many jobs there are."""
        return len(self._jobs)

    def start(self) -> None:
        """Do nothing: the phases submit."""

    def stop(self) -> None:
        """Do nothing."""


def _outcome(decision: Decision) -> str:
    return "accepted" if decision.accepted else decision.reason
