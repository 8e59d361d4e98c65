"""Parse what the functions answer into types, on arrival (the JSON shapes stand in each function's header)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluicegate.admission import Decision
from sluicegate.job import Effects, Job

Body = Mapping[str, Any]
# What a hot command answers: values one after the other.
Flat = Sequence[Any]
Values = tuple[Any, ...]

# How many values each part of a flat answer has.
_CLAIM_HEAD, _JOB_WIDTH, _EVENT_WIDTH = 6, 12, 4
_SETTLED_WIDTH = 5
_STORED = 2


def rows(body: Body, name: str) -> list[Any]:
    """Take a list out of a reply; an empty one arrives as an empty object."""
    value = body.get(name)
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class StrangeKeys:
    """Hold the keys of a queue that nothing can read as they are.

    wrong: name, type and the type it should have; old: those of version 1 of the layout; lost: open jobs by id that
    their container does not name, with that container.
    """

    wrong: tuple[tuple[str, str, str], ...] = ()
    old: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()

    def more(self, body: Body) -> StrangeKeys:
        """Add what a further part of the keys brought; one may come twice, for keys move while they are walked."""
        wrong = dict.fromkeys((*self.wrong, *((name, kind, wanted) for name, kind, wanted in rows(body, "wrong"))))
        lost = dict.fromkeys((*self.lost, *((job_id, container) for job_id, container in rows(body, "lost"))))
        return StrangeKeys(tuple(wrong), tuple(dict.fromkeys((*self.old, *rows(body, "old")))), tuple(lost))


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Report one job that was expired, or lost with its lease; slack in seconds."""

    job_id: str
    queue_class: str
    attempt: int
    deadline_slack_s: float
    state: str = "expired"

    @classmethod
    def of(cls, body: Body) -> JobEvent:
        return cls(
            job_id=body["job_id"],
            queue_class=body["queue_class"],
            attempt=int(body["attempt"]),
            deadline_slack_s=float(body["deadline_slack_s"]),
            state=str(body.get("state", "expired")),
        )


@dataclass(frozen=True, slots=True)
class Claimed:
    """Hold what one claim gave: jobs, the gate it was decided under, and the instant (ms of Redis TIME)."""

    at_ms: int
    drain_state: str
    epoch: int
    green: bool
    jobs: tuple[Job, ...]
    expired: tuple[JobEvent, ...]

    @classmethod
    def of(cls, answer: Flat) -> Claimed:
        jobs_end = _CLAIM_HEAD + answer[4] * _JOB_WIDTH
        return cls(
            at_ms=answer[0],
            drain_state=answer[1],
            epoch=int(answer[2]),
            green=answer[3] == 1,
            jobs=tuple(_job(answer, at) for at in range(_CLAIM_HEAD, jobs_end, _JOB_WIDTH)),
            expired=tuple(
                JobEvent(answer[at], answer[at + 1], answer[at + 2], answer[at + 3] / 1000)
                for at in range(jobs_end, len(answer), _EVENT_WIDTH)
            ),
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """Say what a settlement did: answer is ok, repeat or stale; state is where the job is now."""

    answer: str
    state: str
    event: JobEvent | None


@dataclass(frozen=True, slots=True)
class Renewed:
    """Say which leases are no longer the worker's, and the gate now."""

    lost: tuple[str, ...]
    drain_state: str
    epoch: int

    @classmethod
    def of(cls, answer: Flat) -> Renewed:
        return cls(tuple(answer[2:]), answer[0], int(answer[1]))


@dataclass(frozen=True, slots=True)
class Swept:
    """Report what a sweep ended; `more` says that its limit was reached."""

    expired: tuple[JobEvent, ...]
    lost: tuple[JobEvent, ...]
    more: bool

    @classmethod
    def of(cls, body: Body) -> Swept:
        return cls(
            tuple(JobEvent.of(event) for event in rows(body, "expired")),
            tuple(JobEvent.of(event) for event in rows(body, "lost")),
            bool(body["more"]),
        )


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """Say what became of a gate move, and the gate now; `why`, `run` and `limits` where the command gives them."""

    answer: str
    drain_state: str
    epoch: int
    pin: str | None = None
    run: str = ""
    why: str = ""
    acknowledged: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Body) -> GateAnswer:
        return cls(
            answer=body["answer"],
            drain_state=str(body.get("drain_state", "drain")),
            epoch=int(body.get("epoch", 0)),
            pin=body.get("pin"),
            run=str(body.get("run", "")),
            why=str(body.get("why", "")),
            acknowledged=int(body.get("acknowledged", 0)),
            limits=body.get("limits") or {},
        )


@dataclass(frozen=True, slots=True)
class GateLogEntry:
    """Hold one gate move as logged; figures as JSON."""

    entry_id: str
    at_ms: int
    from_state: str
    to_state: str
    reason: str
    actor: str
    epoch: int
    pin: str
    run: str
    note: str
    figures: str

    @classmethod
    def of(cls, body: Body) -> GateLogEntry:
        return cls(
            entry_id=body["id"],
            at_ms=int(body["at"]),
            from_state=body["from"],
            to_state=body["to"],
            reason=body["reason"],
            actor=body["actor"],
            epoch=int(body["epoch"]),
            pin=body["pin"],
            run=body["run"],
            note=body["note"],
            figures=body["figures"],
        )

    @property
    def seen(self) -> Mapping[str, float | None]:
        """Give the figures that the move was decided by; empty where it was decided by none, or they make no sense."""
        try:
            body = json.loads(self.figures)
        except ValueError:
            return {}
        if not isinstance(body, dict):
            return {}
        numbers = {name: value for name, value in body.items() if isinstance(value, int | float | None)}
        return {name: None if value is None else float(value) for name, value in numbers.items()}


@dataclass(frozen=True, slots=True)
class WorkerView:
    """Show one worker: when it was seen, the epoch it confirmed, the jobs it holds, its last stop report."""

    worker_id: str
    seen_ms_ago: int
    epoch: int
    inflight: int
    report: str

    @classmethod
    def of(cls, body: Body) -> WorkerView:
        return cls(body["id"], int(body["seen_ms_ago"]), int(body["epoch"]), int(body["inflight"]), body["report"])


def admissions(ids: Iterable[str], answer: Flat) -> tuple[Decision, ...]:
    """Parse the decisions on these ids, which follow the epoch; a refusal has two values more."""
    decisions, at = [], 1
    for job_id in ids:
        verdict = answer[at]
        if verdict & 1:
            decisions.append(Decision(True, job_id, replayed=verdict >= _STORED))
            at += 1
        else:
            wait_ms = answer[at + 2]
            wait_s = wait_ms / 1000 if wait_ms >= 0 else None
            decisions.append(Decision(False, job_id, answer[at + 1], wait_s, verdict >= _STORED))
            at += 3
    return tuple(decisions)


def values(flat: Flat, width: int) -> list[Values]:
    """Part a flat list into rows of so many values."""
    rest = iter(flat)
    return list(zip(*[rest] * width, strict=True))


def put_back(answer: Flat) -> tuple[str, Mapping[str, int]]:
    """Parse what a part of a restore came to: ok or not_restoring, and how many of each kind."""
    return answer[0], dict(values(answer[1:], 2))


def settlements(ids: Sequence[str], answer: Flat) -> tuple[Settled, ...]:
    """Parse what became of the settlements of these ids."""
    settled = []
    for job_id, at in zip(ids, range(0, len(answer), _SETTLED_WIDTH), strict=True):
        said, state, job_class, attempt, slack_ms = answer[at : at + _SETTLED_WIDTH]
        event = JobEvent(job_id, job_class, attempt, slack_ms / 1000) if job_class else None
        settled.append(Settled(said, state, event))
    return tuple(settled)


def _job(answer: Flat, at: int) -> Job:
    job_id, job_class, cost, deadline, attempt, retries, fence, epoch, window, effects, canary, payload = answer[
        at : at + _JOB_WIDTH
    ]
    return Job(
        job_id=job_id,
        job_class=job_class,
        deadline_ms=deadline,
        attempt=attempt,
        retries_used=retries,
        idempotency_key=job_id,
        fence=int(fence),
        epoch=int(epoch),
        window=int(window),
        effects=_EFFECTS[effects],
        payload=payload,
        canary=canary,
        cost_class=cost,
    )


_EFFECTS = {effects.value: effects for effects in Effects}
