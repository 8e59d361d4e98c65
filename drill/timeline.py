"""Record what happens during a drill: samples of the figures, phases, what the drill itself did, alerts and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluicegate.policy import Thresholds
from sluicegate.replies import GateLogEntry, WorkerView
from sluicegate.run_replies import RunHistory
from sluicegate.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Look:
    """Hold everything the drill saw in one look; the gate's log is oldest first, the runs too."""

    telemetry: Telemetry
    gate_log: tuple[GateLogEntry, ...]
    runs: tuple[RunHistory, ...]
    workers: tuple[WorkerView, ...]
    firing: tuple[str, ...]

    @property
    def at_ms(self) -> int:
        """Return when it was, by Redis TIME."""
        return self.telemetry.at_ms

    @property
    def run(self) -> RunHistory | None:
        """Return the newest lock-holding run, None before the first."""
        return self.runs[-1] if self.runs else None


@dataclass(slots=True)
class PhaseRecord:
    """Hold one phase of the scenario: when it was, and what ended it or was missed."""

    name: str
    text: str
    from_ms: int
    to_ms: int = 0
    waited_for: str = ""
    reached: bool = False
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """Hold something that the drill itself did, such as switching a fault on."""

    at_ms: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """Hold a worker's own report of what it did when it stopped pulling."""

    worker: str
    text: str


@dataclass(frozen=True, slots=True)
class Post:
    """Hold what one delivery of a webhook was answered: the run it came to, how, and whether it was known already."""

    run: str
    outcome: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """Hold what the queue stored of the drill's jobs at one moment, in the order of the queue: record by job id."""

    pending: tuple[str, ...]
    records: Mapping[str, Mapping[str, Any]]


@dataclass
class Timeline:
    """Collect a drill's record while it runs; whole looks are kept only as samples, `sample_every_ms` apart."""

    sample_every_ms: int
    thresholds: Thresholds
    samples: list[Telemetry] = field(default_factory=list)
    phases: list[PhaseRecord] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    latest: Look | None = None

    def add(self, look: Look) -> None:
        """Take a look in: the newest is kept whole, its figures as a sample when the last one is old enough.

        A gate that moved and a job that became unknown are too much to miss between two samples.
        """
        self.latest = look
        last = self.samples[-1] if self.samples else None
        if last is None or _differ(last, look.telemetry) or look.at_ms - last.at_ms >= self.sample_every_ms:
            self.samples.append(look.telemetry)
        self._add_reports(look.workers)

    def mark(self, at_ms: int, kind: str, text: str) -> None:
        """Note what the drill did."""
        self.marks.append(Mark(at_ms, kind, text))

    def marked(self, kind: str) -> int | None:
        """Return when the drill first did this, None if it never did."""
        return next((mark.at_ms for mark in self.marks if mark.kind == kind), None)

    def _add_reports(self, workers: Sequence[WorkerView]) -> None:
        for worker in workers:
            report = Report(worker.worker_id, worker.report)
            if worker.report and report not in self.reports:
                self.reports.append(report)


def _differ(before: Telemetry, now: Telemetry) -> bool:
    return (before.gate.drain_state, before.unknown) != (now.gate.drain_state, now.unknown)
