"""Measure this queue and its peers in the same rounds, one after the other, by the same code."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import redis

from bench import ticks
from bench.environments import NotInstalled
from bench.lab import PAYLOAD, QUEUED_PAYLOAD, Lab
from bench.peers.pins import KNOWN_TO_FAIL, PINS, Pin
from bench.processes import end, family_cpu_seconds
from bench.producing import CALLERS
from bench.subjects import Failed, Ours, PeerSubject, Subject

_WITHIN_S = 60.0
_OURS = Pin("sluicegate", (), jobs=10_000)


@dataclass(frozen=True, slots=True)
class Figures:
    """Hold one round of one subject: rates in jobs/s, the worker's CPU in µs a job, waits in ms, bytes a queued job."""

    one_by_one: float
    at_once: float | None
    end_to_end: float
    worker_us: float
    server_us: float
    pick_up_ms: float
    bytes_a_job: float

    @property
    def enqueue(self) -> float:
        """Give the faster of the two ways to enqueue."""
        return max(self.one_by_one, self.at_once or 0.0)


@dataclass(slots=True)
class Measured:
    """Hold what was found out about one subject."""

    name: str
    rounds: list[Figures] = field(default_factory=list)
    installed: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """Say which part of the full number of jobs a round takes; a whole number for each caller."""

    part: float = 1.0

    def of(self, n: int) -> int:
        return max(1, int(n * self.part) // CALLERS) * CALLERS


def side_by_side(lab: Lab, rounds: int, share: Share, say: Callable[[str], None]) -> tuple[Measured, list[Measured]]:
    """Measure ours and every peer so often; a peer that fails is left out of the rounds that follow, with its error."""
    with tempfile.TemporaryDirectory(prefix="queue-bench-") as folder, contextlib.ExitStack() as stack:
        ours, measured = Measured("sluicegate"), {name: Measured(name) for name in PINS}
        subjects: dict[str, PeerSubject] = {}
        for name, pin in PINS.items():
            with _noted(measured[name]):
                subjects[name] = PeerSubject(lab, name, pin, Path(folder))
                stack.callback(subjects[name].close)
                measured[name].installed = subjects[name].installed
        us = Ours(lab)
        stack.callback(us.close)
        for number in range(1, rounds + 1):
            ours.rounds.append(measure_round(lab, us, _OURS, share, Path(folder)))
            for name, subject in subjects.items():
                if not measured[name].error:
                    with _noted(measured[name]):
                        measured[name].rounds.append(measure_round(lab, subject, PINS[name], share, Path(folder)))
            say(f"round {number} of {rounds} beside the peers is done")
        return ours, list(measured.values())


@contextlib.contextmanager
def _noted(measured: Measured) -> Iterator[None]:
    try:
        yield
    except (Failed, NotInstalled, OSError, redis.exceptions.RedisError, subprocess.SubprocessError) as error:
        measured.error = str(error) or repr(error)


def unexpected(measured: Sequence[Measured]) -> list[str]:
    """Name the peers that failed and are not listed as known to."""
    return [one.name for one in measured if one.error and one.name not in KNOWN_TO_FAIL]


def measure_round(lab: Lab, subject: Subject, pin: Pin, share: Share, folder: Path) -> Figures:
    """Measure one round of one subject; `folder` gets the file that its handlers write into."""
    jobs = share.of(pin.jobs)
    subject.open()
    one_by_one = jobs / subject.enqueue(jobs, PAYLOAD)
    subject.open()
    took_s = subject.enqueue_at_once(jobs, CALLERS, PAYLOAD)
    bytes_a_job = _bytes_a_job(lab, subject, jobs)
    subject.open()
    if subject.enqueue_at_once(jobs, CALLERS, PAYLOAD) is None:
        subject.enqueue(jobs, PAYLOAD)
    with _worker(subject, folder) as (process, path):
        rate, worker_us, server_us = _end_to_end(lab, subject, process, path, jobs)
        picked_ms = _picked_ms(subject, process, path, pin.picked)
    at_once = None if took_s is None else jobs / took_s
    return Figures(one_by_one, at_once, rate, worker_us, server_us, picked_ms, bytes_a_job)


def _bytes_a_job(lab: Lab, subject: Subject, jobs: int) -> float:
    """Give what a queued job takes of the server's memory, indexes included."""
    subject.open()
    before = int(lab.client.info("memory")["used_memory"])
    if subject.enqueue_at_once(jobs, CALLERS, QUEUED_PAYLOAD) is None:
        subject.enqueue(jobs, QUEUED_PAYLOAD)
    return (int(lab.client.info("memory")["used_memory"]) - before) / jobs


@contextlib.contextmanager
def _worker(subject: Subject, folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    path = folder / "ticks"
    path.write_bytes(b"")
    process = subject.start_worker(path)
    try:
        yield process, path
    finally:
        end(process)


def _end_to_end(
    lab: Lab, subject: Subject, process: subprocess.Popen[str], path: Path, jobs: int
) -> tuple[float, float, float]:
    """Measure from the first handler's start to the last acknowledgement: jobs/s, worker and server CPU in µs a job."""
    _until(subject, process, lambda: ticks.count(path) > 0, "start a job")
    worker_s, server_s, before = family_cpu_seconds(process.pid), lab.cpu_seconds(), ticks.count(path)
    _until(subject, process, lambda: ticks.count(path) >= jobs, f"start {jobs} jobs")
    _until(subject, process, lambda: subject.left() == 0, f"acknowledge {jobs} jobs")
    took_s = (time.monotonic_ns() - ticks.read(path)[0]) / 1e9
    counted = max(1, jobs - before)
    worker_us = (family_cpu_seconds(process.pid) - worker_s) / counted * 1e6
    if ticks.count(path) != jobs:
        raise Failed(f"{subject.name} started {ticks.count(path)} handlers for {jobs} jobs")
    return jobs / took_s, worker_us, (lab.cpu_seconds() - server_s) / counted * 1e6


def _picked_ms(subject: Subject, process: subprocess.Popen[str], path: Path, picked: int) -> float:
    """Measure submit → handler on an idle queue; the median, without the first one."""
    waits = []
    for _ in range(picked + 1):
        time.sleep(0.02)
        before = ticks.count(path)
        asked_ns = subject.pick(PAYLOAD)
        _until(subject, process, lambda before=before: ticks.count(path) > before, "pick a job up")  # type: ignore[misc]
        waits.append((ticks.read(path)[-1] - asked_ns) / 1e6)
    return statistics.median(waits[1:])


def _until(subject: Subject, process: subprocess.Popen[str], holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _WITHIN_S
    while not holds():
        ended = process.poll() is not None
        if ended or time.monotonic() > until:
            said = subject.last_words() if isinstance(subject, PeerSubject) else ""
            why = f"its worker ended with {process.returncode}" if ended else f"not within {_WITHIN_S:g} s"
            raise Failed(f"{subject.name} did not {what}: {why}; {said}")
        time.sleep(0.002)
