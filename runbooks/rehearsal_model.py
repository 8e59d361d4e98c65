"""Type a runbook's own tests: what is given, when, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Name what a step comes to."""

    WAITING = "waiting"  # it looks again
    HOLDING = "holding"  # it took longer than it may, and a person decides
    DONE = "done"  # the next step may start
    REOPENED = "reopened"  # the gate is open, by the first share of the ramp
    FAILED = "failed"  # a run without the lock ends, the gate as it is
    ROLLED_BACK = "rolled_back"  # a run with the lock rolls back, for a reason


@dataclass(frozen=True, slots=True)
class GivenGate:
    """Hold how the gate stands: the pin, and the runbooks of the live runs with and without the lock."""

    drain_state: str = "admit"
    pin: str | None = None
    run: str | None = None
    beside: tuple[str, ...] = ()
    kill_switch: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """Hold what a test starts from: a recorded webhook, the gate, and of each figure a value a look (None: no data)."""

    webhook: str | None
    metrics: Mapping[str, tuple[float | None, ...]]
    gate: GivenGate


@dataclass(frozen=True, slots=True)
class When:
    """Say which step looks, how far apart its looks are, and how long it has lasted at the first of them (seconds)."""

    step: str
    every_s: float
    after_s: float


@dataclass(frozen=True, slots=True)
class Expected:
    """Hold what must come of it; None is not asked."""

    starts: bool | None
    state: State | None
    admission: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class RunbookTest:
    """Hold one case of the runbook's own tests."""

    name: str
    given: Given
    when: When | None
    then: Expected
