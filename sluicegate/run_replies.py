"""Parse what the functions answer about runs, their journals and the alerts that ask for them, on arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.replies import Body, JobEvent, rows


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """Say what became of a run's step; `expired` where it drained, `more` where it has to be called again."""

    answer: str
    epoch: int
    drain_state: str
    expired: tuple[JobEvent, ...]
    more: bool

    @classmethod
    def of(cls, body: Body) -> StepAnswer:
        return cls(
            answer=body["answer"],
            epoch=int(body.get("epoch", 0)),
            drain_state=str(body.get("drain_state", "drain")),
            expired=tuple(JobEvent.of(event) for event in rows(body, "expired")),
            more=bool(body.get("more", False)),
        )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Hold a run as stored; timestamps in ms of Redis TIME, 0 for not yet."""

    run_id: str
    runbook: str
    state: str
    step: int
    verb: str
    fence: str
    owner: str
    trigger: str
    actor: str
    reason: str
    digest: str
    rollback_reason: str
    started_at_ms: int
    ended_at_ms: int
    ended_by: str
    ended_why: str
    held_since_ms: int = 0
    held_until_ms: int = 0
    held_by: str = ""
    step_held_ms: int = 0

    @property
    def live(self) -> bool:
        return self.state in ("running", "rolling_back")

    @property
    def held(self) -> bool:
        """Say whether a person holds it: it makes no step until they let it go on, or until the hold expires."""
        return self.state == "running" and self.held_until_ms > 0

    def held_ms(self, at_ms: int) -> int:
        """Give how long the step it is in was held, up to now (ms, Redis TIME)."""
        return self.step_held_ms + (max(0, at_ms - self.held_since_ms) if self.held else 0)

    @classmethod
    def of(cls, body: Body) -> RunRecord:
        return cls(
            run_id=body["id"],
            runbook=body["runbook"],
            state=body["state"],
            step=int(body.get("step", 0)),
            verb=str(body.get("verb", "")),
            fence=str(body.get("fence", "0")),
            owner=str(body.get("owner", "")),
            trigger=str(body.get("trigger", "")),
            actor=str(body.get("actor", "")),
            reason=str(body.get("reason", "")),
            digest=str(body.get("digest", "")),
            rollback_reason=str(body.get("rollback_reason", "")),
            started_at_ms=int(body.get("started_at", 0)),
            ended_at_ms=int(body.get("ended_at", 0)),
            ended_by=str(body.get("ended_by", "")),
            ended_why=str(body.get("ended_why", "")),
            held_since_ms=int(body.get("held_since", 0)),
            held_until_ms=int(body.get("held_until", 0)),
            held_by=str(body.get("held_by", "")),
            step_held_ms=int(body.get("step_held_ms", 0)),
        )


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Hold one line of a run's journal; `detail` is JSON."""

    entry_id: str
    at_ms: int
    seq: int
    verb: str
    phase: str
    actor: str
    text: str
    detail: str

    @classmethod
    def of(cls, body: Body) -> JournalEntry:
        return cls(
            entry_id=body["id"],
            at_ms=int(body["at"]),
            seq=int(body["seq"]),
            verb=body["verb"],
            phase=body["phase"],
            actor=body["actor"],
            text=body["text"],
            detail=body["detail"],
        )


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Hold a run, its journal in order, and the approvals it has: a step's place and verb → who and why."""

    run: RunRecord
    journal: tuple[JournalEntry, ...]
    approvals: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunClaim:
    """Say whether there is a live run, whether it is the caller's now, and which runbooks have one beside the lock."""

    run: RunRecord | None
    owned: bool
    fence: str
    besides: tuple[str, ...] = ()

    @classmethod
    def of(cls, body: Body) -> RunClaim:
        run = RunRecord.of(body["run"]) if body.get("run") else None
        return cls(run, bool(body["owned"]), str(body.get("fence", "")), tuple(rows(body, "besides")))


@dataclass(frozen=True, slots=True)
class Episode:
    """Hold one open episode of an alert: what asked for a run, and what the last look at it came to."""

    episode_id: str
    number: int
    name: str
    runbook: str
    labels: str
    outcome: str
    run: str
    opened_at_ms: int

    @property
    def source(self) -> str:
        """Give who sends its notifications: one system's fingerprints are not another's."""
        return self.episode_id.partition(":")[0]

    @classmethod
    def of(cls, body: Body) -> Episode:
        return cls(
            episode_id=body["id"],
            number=int(body["number"]),
            name=body["name"],
            runbook=body["runbook"],
            labels=body["labels"],
            outcome=body["outcome"],
            run=body["run"],
            opened_at_ms=int(body["opened_at"]),
        )


@dataclass(frozen=True, slots=True)
class Notified:
    """Say what keeping a notification did: its event id, and each alert's episode as (id, state, new)."""

    event: str
    episodes: tuple[tuple[str, str, bool], ...]

    @classmethod
    def of(cls, body: Body) -> Notified:
        kept = tuple((row["id"], row["state"], bool(row["new"])) for row in rows(body, "episodes"))
        return cls(body["event"], kept)


@dataclass(frozen=True, slots=True)
class Asked:
    """Say what forbids a machine's run on its queue, if anything; how many jobs a drain would expire, by class; and how
    many runs the queue's contract allows at once over all queues, None without a contract."""

    forbidden: str
    expires: Mapping[str, int]
    runs_at_once: int | None = None

    @classmethod
    def of(cls, body: Body) -> Asked:
        expires = {str(name): int(count) for name, count in dict(body["expires"]).items()}
        limit = dict(body.get("limits") or {}).get("limit")
        return cls(str(body["forbidden"]), expires, None if limit is None else int(limit))
