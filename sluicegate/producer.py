"""Submit jobs and get durable decisions.

A refusal is a result, not an exception. After `StoreUnavailable` the outcome is not known: the job may have been
admitted or refused. Repeating the submission **with the same idempotency key** (and payload) is always safe: a key
that was decided gets the same job or the same live refusal, and counts once. So whoever may have to repeat gives a
key, or keeps the submission that `prepare` made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sluicegate.admission import Decision
from sluicegate.clock import Clock, SystemClock
from sluicegate.errors import StoreUnavailable
from sluicegate.job_ids import JobIds
from sluicegate.store import Store
from sluicegate.submission import Submission, build_submission, one_identity

MAX_BATCH = 100
# One call must stay short: Redis does nothing else meanwhile.
MAX_BATCH_BYTES = 1_048_576
# How long to wait before asking again after no answer came at all.
UNANSWERED_RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Deferred:
    """Keep a submission for later: repeated after `retry_after_s`, it has the same id and key.

    `reason` is the refusal's, or `unanswered` where nobody knows yet what was decided.
    """

    submission: Submission
    reason: str
    retry_after_s: float


class Producer:
    """Submit to one queue; safe to share between threads."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._ids = JobIds()

    def prepare(
        self,
        job_class: str,
        payload: str,
        *,
        idempotency_key: str | None = None,
        job_id: str | None = None,
        deadline_s: float | None = None,
        deadline_ts: float | None = None,
        cost_class: str | None = None,
    ) -> Submission:
        """Give a submission its id and key without sending it; raises UsageError where a field breaks its bound.

        `deadline_s` counts from the decision, `deadline_ts` is Unix time; without either it is the class's. A job's id
        is its idempotency key; where neither is given it is random, and sorts after those that this producer made
        before: `fifo` takes jobs that became ready in the same millisecond in that order.
        """
        named = one_identity(job_id, idempotency_key)
        return build_submission(
            job_class,
            payload,
            job_id=self._ids.new(self._clock.now_ms()) if named is None else named,
            cost_class=cost_class,
            deadline_s=deadline_s,
            deadline_ts=deadline_ts,
        )

    def submit(
        self,
        job_class: str,
        payload: str,
        *,
        idempotency_key: str | None = None,
        job_id: str | None = None,
        deadline_s: float | None = None,
        deadline_ts: float | None = None,
        cost_class: str | None = None,
    ) -> Decision:
        """Ask for one job (fields as in `prepare`); raises StoreUnavailable where no answer came."""
        submission = self.prepare(
            job_class,
            payload,
            idempotency_key=idempotency_key,
            job_id=job_id,
            deadline_s=deadline_s,
            deadline_ts=deadline_ts,
            cost_class=cost_class,
        )
        return self._store.admit((submission.words(),))[0]

    def submit_many(self, submissions: Iterable[Submission]) -> tuple[Decision, ...]:
        """Decide many in their order, at most 100 a call.

        Each job is decided by itself. After StoreUnavailable in a later call the earlier ones stand: repeat them all.
        """
        decisions: list[Decision] = []
        for batch in _batches(submissions):
            decisions += self._store.admit([submission.words() for submission in batch])
        return tuple(decisions)

    def submit_or_defer(self, submission: Submission) -> Decision | Deferred:
        """Submit; what may be accepted later comes back as Deferred, to be handed in again with its id and key.

        No answer is deferred, too. Repeat with `submit_or_defer(deferred.submission)`.
        """
        try:
            decision = self._store.admit((submission.words(),))[0]
        except StoreUnavailable:
            return Deferred(submission, "unanswered", UNANSWERED_RETRY_S)
        if decision.final or decision.retry_after_s is None:
            return decision
        return Deferred(submission, decision.reason, decision.retry_after_s)


def _batches(submissions: Iterable[Submission]) -> Iterator[Sequence[Submission]]:
    batch: list[Submission] = []
    size = 0
    for submission in submissions:
        if batch and (len(batch) == MAX_BATCH or size + submission.size > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(submission)
        size += submission.size
    if batch:
        yield batch
