"""Say what a job is, which state may follow which, and what a call's outcome does to it (contract §3, §4). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sluicegate.telemetry import OTHER_CLASS


class JobState(StrEnum):
    """Name where a job is; the comment says who moves it next."""

    READY = "ready"  # a worker's claim, or the sweep when its deadline nears
    DELAYED = "delayed"  # promote, when its ready time has come; the sweep
    RUNNING = "running"  # its worker, or the end of its lease
    UNKNOWN = "unknown"  # a reconcile record: ledger, provider, the late worker, a person
    BLOCKED = "blocked"  # a named person
    SUCCEEDED = "succeeded"  # nobody: final
    FAILED = "failed"  # nobody: final
    EXPIRED = "expired"  # nobody: final


FINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.EXPIRED})

# What may follow what; anything else is a bug. `accepted` of contract §4 is ready or delayed.
MOVES: dict[JobState, frozenset[JobState]] = {
    JobState.READY: frozenset({JobState.RUNNING, JobState.EXPIRED}),
    JobState.DELAYED: frozenset({JobState.READY, JobState.EXPIRED}),
    JobState.RUNNING: frozenset(JobState) - {JobState.RUNNING},
    JobState.UNKNOWN: frozenset(
        {JobState.READY, JobState.DELAYED, JobState.SUCCEEDED, JobState.FAILED, JobState.EXPIRED, JobState.BLOCKED}
    ),
    JobState.BLOCKED: frozenset({JobState.READY, JobState.SUCCEEDED, JobState.FAILED, JobState.EXPIRED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.EXPIRED: frozenset(),
}


class Effects(StrEnum):
    """Declare what a repeated call does."""

    NONE = "none"  # nothing outside: repeat freely
    KEYED = "keyed"  # the provider honours the idempotency key: a repeat is safe
    UNSAFE = "unsafe"  # a repeat may do it twice: an ambiguous outcome becomes unknown


def effects_of(contract: Mapping[str, Any], job_class: str) -> Effects:
    """Give what a stored contract says of a class.

    Of one that it declares no more nobody says so any more, and it may have been unsafe; the functions have the same.
    """
    classes = contract.get("classes") or {}
    if job_class in classes:
        return Effects(classes[job_class]["effects"])
    return Effects.KEYED if job_class == OTHER_CLASS else Effects.UNSAFE


class Outcome(StrEnum):
    """Name how a worker settles a job it holds."""

    SUCCEEDED = "succeeded"  # 200: done
    FAILED = "failed"  # a confirmed final failure
    RETRY = "retry"  # an answer or a timeout that uses a retry
    NOT_EXECUTED = "not_executed"  # 429 or a refused connection: uses time, no retry
    UNKNOWN = "unknown"  # ambiguous, and a repeat is not safe
    EXPIRED = "expired"  # less than the margin was left
    REQUEUED = "requeued"  # a drain put it back to the head, eligible-since kept


class CallKind(StrEnum):
    """Name how one provider call ended, for the provider window."""

    OK = "ok"
    STATUS_5XX = "5xx"
    STATUS_OTHER = "other"
    TIMEOUT = "timeout"
    REFUSED = "refused"  # the connection was refused: nothing was executed
    DROPPED = "dropped"  # the connection broke after the request was sent
    CANCELLED = "cancelled"  # cut by a drain


@dataclass(frozen=True, slots=True)
class Job:
    """Hold one claimed job as its worker sees it; times in ms of Redis TIME."""

    job_id: str
    job_class: str
    deadline_ms: int
    attempt: int
    retries_used: int
    idempotency_key: str
    fence: int
    epoch: int
    window: int
    effects: Effects
    payload: str
    canary: str = ""
    cost_class: str = "-"


@dataclass(frozen=True, slots=True)
class Call:
    """Hold what one provider call came to; `retry_after_s` only where the answer named one."""

    kind: CallKind
    latency_s: float
    status: int | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Hold the bounds of retries, all in seconds (contract §3)."""

    margin_s: float
    call_timeout_max_s: float
    call_timeout_min_s: float
    call_reserve_s: float
    backoff_first_s: float
    backoff_max_s: float

    def call_timeout_s(self, remaining_s: float) -> float:
        """Give min(10, max(1, remaining − 1)) (contract §3)."""
        return min(self.call_timeout_max_s, max(self.call_timeout_min_s, remaining_s - self.call_reserve_s))

    def may_finish_in_drain(self, remaining_s: float, timeout_s: float) -> bool:
        """Say whether a call in progress may go on in a drain: its slack exceeds its timeout + 1 s (contract §3)."""
        return remaining_s > timeout_s + self.call_reserve_s

    def backoff_s(self, tries_before: int, draw: Callable[[], float]) -> float:
        """Give the wait before the next attempt: 2 s doubling to 30 s, ± 20 %; `draw` gives 0..1."""
        base = min(self.backoff_max_s, self.backoff_first_s * float(1 << min(tries_before, 16)))
        return base * (0.8 + 0.4 * draw())


@dataclass(frozen=True, slots=True)
class Settlement:
    """Pair an outcome with the wait until the job may be tried again."""

    outcome: Outcome
    delay_s: float = 0.0


# Calls that broke off and may have done their work.
AMBIGUOUS = frozenset({CallKind.TIMEOUT, CallKind.DROPPED, CallKind.CANCELLED})
_HTTP_TOO_MANY = 429
# No job waits so long; what a provider asks for may have so many digits that it is infinite.
_LONGEST_WAIT_S = 1e9


def settle_after(call: Call, job: Job, rules: RetryRules, draw: Callable[[], float]) -> Settlement:
    """Say what a call's end does to its job (contract §3).

    200 is done. 429 and a refused connection were not executed. Where the outcome is ambiguous, `unsafe` becomes
    unknown; everything else is a retry. The functions turn a retry past its deadline into an expiry and one past the
    budget into blocked.
    """
    if call.kind is CallKind.OK:
        return Settlement(Outcome.SUCCEEDED)
    if call.kind in AMBIGUOUS and job.effects is Effects.UNSAFE:
        return Settlement(Outcome.UNKNOWN)
    if call.kind is CallKind.CANCELLED:
        return Settlement(Outcome.REQUEUED)
    # By attempts, not by retries: what was not executed uses no retry, and must be asked ever more rarely all the same.
    delay_s = min(max(rules.backoff_s(job.attempt - 1, draw), call.retry_after_s or 0.0), _LONGEST_WAIT_S)
    if call.kind is CallKind.REFUSED or call.status == _HTTP_TOO_MANY:
        return Settlement(Outcome.NOT_EXECUTED, delay_s)
    return Settlement(Outcome.RETRY, delay_s)
