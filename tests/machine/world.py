"""What the queue should hold after each command: the values, and how a job enters, leaves and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sluicegate.job import Effects
from sluicegate.job import Job as Handed
from sluicegate.replies import JobEvent
from tests.machine.gate import Gate

UNFINISHED = ("ready", "delayed", "running")
FINAL = ("succeeded", "failed", "expired")
BUCKETS = 6


@dataclass(frozen=True, slots=True)
class Job:
    """Hold what is expected of one job; times in ms, `ends_at` is when its record goes, 0 for never."""

    job_id: str
    job_class: str
    declared: str
    cost: str
    deadline: int
    key: str
    eligible: int
    admitted_at: int
    payload: str
    canary: str = ""
    state: str = "ready"
    attempt: int = 0
    retries: int = 0
    losses: int = 0
    fence: int = 0
    worker: str = ""
    ready_at: int = 0
    lease_end: int = 0
    since: int = 0
    window: str = "0"
    epoch: int = 0
    cause: str = ""
    ended_at: int = 0
    ends_at: int = 0
    # The fence that a restore gave it: under that one it has not been started.
    restored_fence: int = 0
    # Unsafe, and a success came too late to count, while it had not run again.
    late_success: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """Hold the stored decision of one key."""

    job_id: str
    fingerprint: str
    accepted: bool
    reason: str = ""
    retry_at: int = 0
    ends_at: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold the ledger's entry of one key; instants in ms, 0 for none."""

    intent: int = 0
    fence: int = 0
    confirmed: int = 0
    ends_at: int = 0


@dataclass(frozen=True, slots=True)
class Seat:
    """Hold a worker's last claim, which a repeat of its request id gives again."""

    request: str
    claimed: tuple[tuple[str, int], ...]
    ends_at: int


@dataclass
class World:
    """Hold everything expected of one queue; commands change it, a race works on copies."""

    contract: Mapping[str, Any]
    gate: Gate = field(default_factory=Gate)
    now_us: int = 0
    jobs: dict[str, Job] = field(default_factory=dict)
    decisions: dict[str, Decided] = field(default_factory=dict)
    ledger: dict[str, Entry] = field(default_factory=dict)
    seats: dict[str, Seat] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    class_counters: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    records: list[tuple[str, str, str]] = field(default_factory=list)
    calls: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    done: Counter[int] = field(default_factory=Counter)
    duplicates: int = 0
    settled: dict[tuple[str, str], str] = field(default_factory=dict)
    refused_late: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> World:
        """Give a copy that changes by itself; the values in it never change."""
        # The contract stays the same; the gate is a value.
        changed: dict[str, Any] = {
            name: value.copy()
            for name, value in vars(self).items()
            if name not in ("contract", "gate", "now_us", "duplicates")
        }
        return replace(self, **changed)

    @property
    def now(self) -> int:
        return self.now_us // 1000

    @property
    def timings(self) -> Mapping[str, int]:
        timings: Mapping[str, int] = self.contract["timings"]
        return timings

    def declared(self, job_class: str) -> Mapping[str, Any] | None:
        declared: Mapping[str, Any] | None = self.contract["classes"].get(job_class)
        return declared

    def ordinary(self, *states: str) -> Iterator[Job]:
        """Give the jobs in some states, canaries aside."""
        return (job for job in self.jobs.values() if job.state in states and not job.canary)

    def doomed(self, job: Job) -> bool:
        return job.deadline - self.now < self.timings["margin_ms"]

    def bucket(self) -> int:
        return self.now * BUCKETS // self.timings["provider_window_ms"]

    def completions(self) -> int:
        newest = self.bucket()
        return sum(self.done[bucket] for bucket in range(newest - BUCKETS + 1, newest + 1))

    def forget(self) -> None:
        """Drop what has outlived its retention."""

        def stays(value: Job | Decided | Entry | Seat) -> bool:
            return value.ends_at == 0 or self.now <= value.ends_at

        self.jobs = {name: job for name, job in self.jobs.items() if stays(job)}
        self.decisions = {name: decided for name, decided in self.decisions.items() if stays(decided)}
        self.ledger = {name: entry for name, entry in self.ledger.items() if stays(entry)}
        self.seats = {name: seat for name, seat in self.seats.items() if stays(seat)}
        # What repeats are told by is kept in the job's record.
        self.settled = {(job, request): at for (job, request), at in self.settled.items() if job in self.jobs}
        self.refused_late = {(job, request) for job, request in self.refused_late if job in self.jobs}


def event(world: World, job: Job, state: str = "expired") -> JobEvent:
    """Give the event that tells of a job as it is now."""
    return JobEvent(job.job_id, job.job_class, job.attempt, (job.deadline - world.now) / 1000, state)


def handed(world: World, job: Job) -> Handed:
    """Give a running job as its worker sees it."""
    declared = world.declared(job.job_class)
    return Handed(
        job_id=job.job_id,
        job_class=job.declared or job.job_class,
        deadline_ms=job.deadline,
        attempt=job.attempt,
        retries_used=job.retries,
        idempotency_key=job.key,
        fence=job.fence,
        epoch=job.epoch,
        window=int(job.window),
        effects=Effects(declared["effects"]) if declared else Effects.KEYED,
        payload=job.payload,
        canary=job.canary,
        cost_class=job.cost,
    )


def enter(world: World, job: Job, *, head: bool = False) -> Job:
    """Put a job where its state says; the view for people is in the order of entering."""
    before = world.jobs.get(job.job_id)
    if before is not None and before.state == "ready" and not before.canary:
        world.pending.remove(job.job_id)
    if job.state == "ready" and not job.canary:
        world.pending.insert(0 if head else len(world.pending), job.job_id)
    world.jobs[job.job_id] = job
    return job


def start(world: World, job: Job, worker: str) -> Job:
    return enter(
        world,
        replace(
            job,
            state="running",
            fence=max(job.fence + 1, world.now_us),
            attempt=job.attempt + 1,
            worker=worker,
            lease_end=world.now + world.contract["lease_ms"],
            window=world.gate.window,
            epoch=world.gate.epoch,
        ),
    )


def finish(world: World, job: Job, state: str, cause: str) -> str:
    """End a job: counted once, kept for its retention, with a line where it did not succeed."""
    retention = max(
        world.timings["final_retention_ms"], 2 * max(c["deadline_ms"] for c in world.contract["classes"].values())
    )
    ends_at = world.now + retention
    enter(world, replace(job, state=state, cause=cause, ended_at=world.now, ends_at=ends_at))
    if job.key in world.decisions:
        world.decisions[job.key] = replace(world.decisions[job.key], ends_at=ends_at)
    if job.key in world.ledger:
        world.ledger[job.key] = replace(world.ledger[job.key], ends_at=ends_at)
    if job.canary:
        return state
    world.class_counters[job.job_class, state] += 1
    if state == "expired":
        world.counters["expired"] += 1
    else:
        met = "met" if state == "succeeded" and world.now <= job.deadline else "missed"
        world.counters[met] += 1
        world.class_counters[job.job_class, met] += 1
    if state != "succeeded":
        date = datetime.fromtimestamp(world.now / 1000, UTC).date().isoformat()
        world.failures[date, job.job_id, state, cause or job.state] += 1
    return state


def again(world: World, job: Job, delay_ms: int, *, head: bool = False, called: bool = False) -> str:
    """Let a job be tried again unless too little time would be left; `called` if its call may have happened."""
    ready_at = world.now + delay_ms
    if ready_at > job.deadline - world.timings["margin_ms"]:
        return finish(world, job, "expired", f"no_time_for_retry{'_call_may_have_happened' if called else ''}")
    if delay_ms > 0:
        return enter(world, replace(job, state="delayed", worker="", ready_at=ready_at, eligible=ready_at)).state
    eligible = job.eligible if head else world.now
    return enter(world, replace(job, state="ready", worker="", eligible=eligible), head=head).state


def set_aside(world: World, job: Job, state: str, **changes: Any) -> str:
    """Move a job to unknown or blocked."""
    world.counters[state] += 1
    return enter(world, replace(job, state=state, since=world.now, **changes)).state


def lose(world: World, job: Job) -> str:
    """End a lease that ran out (contract §4): unknown, and blocked after too many losses."""
    world.counters["lease_expired"] += 1
    if job.canary:
        world.counters["canaries_failed"] += 1
        return finish(world, job, "failed", "lease_expired")
    losses = job.losses + 1
    if losses >= world.contract["loss_budget"]:
        return set_aside(world, job, "blocked", losses=losses, cause="poison", worker="")
    return set_aside(world, job, "unknown", losses=losses, cause="lease_expired")
