"""Move a job out of unknown or blocked by somebody's word: a named person's, or a resolver's (contract §4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluicegate.job import Effects, JobState, effects_of
from sluicegate.store import Store


class Verdict(StrEnum):
    """Name what may be said of a job whose end nobody saw; the comment says where the job goes."""

    SUCCEEDED = "succeeded"  # it was done: final
    FAILED = "failed"  # it was not done and will not be: final
    RETRY = "retry"  # a repeat is safe: ready again with the same key, or expired
    BLOCK = "block"  # a person has to look: blocked


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Say what became of a verdict, and where the job is.

    answer: moved, refused (not its state to leave), stale (it was started after it was looked at) or gone.
    """

    answer: str
    state: str


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Hold what the ledger has under one key: confirmed, and the fence of the start that last recorded its intent.

    known_start: the ledger has seen every start of the job. It has not where a snapshot was restored and nothing has
    started since: what ran after the snapshot is in no ledger.
    """

    confirmed: bool
    intent_fence: str
    known_start: bool = True


def ledger_verdict(entry: LedgerEntry, fence: str, effects: Effects) -> tuple[Verdict, str]:
    """Judge an unknown job from the ledger alone; gives the verdict and why.

    A confirmed effect was done. Without an intent under the job's current fence its last start made no call. After an
    intent the call may have happened: harmless where a repeat is, for a person otherwise.
    """
    if entry.confirmed:
        return Verdict.SUCCEEDED, "the ledger holds its confirmation"
    if entry.intent_fence != fence and entry.known_start:
        return Verdict.RETRY, "the ledger holds no intent of its last start, so no call was made"
    if effects is Effects.UNSAFE:
        return Verdict.BLOCK, "its call may have happened and its class is unsafe to repeat"
    return Verdict.RETRY, f"its call may have happened, and a repeat is safe: the class declares effects {effects}"


def by_ledger(store: Store, job_id: str) -> Reconciled:
    """Let the ledger decide an unknown job; any other state is refused."""
    record = store.job(job_id)
    if record is None:
        return Reconciled("gone", "gone")
    job: Mapping[str, str] = record["job"]
    if job["state"] != JobState.UNKNOWN:
        return Reconciled("refused", job["state"])
    ledger: Mapping[str, str] = record.get("ledger") or {}
    known_start = job.get("restored_fence") != job["fence"]
    entry = LedgerEntry("confirmed" in ledger, ledger.get("fence", ""), known_start)
    effects = effects_of(json.loads(store.settings().get("contract", "{}")), job["class"])
    verdict, why = ledger_verdict(entry, job["fence"], effects)
    return Reconciled(
        *store.reconcile(job_id, verdict, actor="ledger", reason=why, source="ledger", fence=job["fence"])
    )


def by_person(
    store: Store, job_id: str, verdict: Verdict, *, actor: str, reason: str, fence: str | None = None
) -> Reconciled:
    """Carry out a named person's word on an unknown or blocked job, with `fence` on no later start than that one."""
    return Reconciled(*store.reconcile(job_id, verdict, actor=actor, reason=reason, source="person", fence=fence))
