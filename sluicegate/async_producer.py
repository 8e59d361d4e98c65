"""Submit from asyncio: everyone who asks at the same time shares a call (group commit).

While as many calls as may be are on their way, whoever asks joins the next one. Semantics and answers are those of
`Producer`; the submissions of one key are decided in the order in which they were made, and a lost answer is lost for
each caller of its call. Repeating with the same key is safe.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from types import TracebackType
from typing import Self, TypedDict, Unpack

from sluicegate.admission import Decision
from sluicegate.clock import Clock
from sluicegate.errors import StoreError, StoreUnavailable, UsageError
from sluicegate.producer import MAX_BATCH, MAX_BATCH_BYTES, UNANSWERED_RETRY_S, Deferred, Producer
from sluicegate.store import Store
from sluicegate.submission import Submission
from sluicegate.turn import Turn

# How many submissions of keys on their way one look may pass over: it stays short under a storm of one key.
_PASSED_OVER_MAX = 100

_Answer = asyncio.Future[Decision]
_Batch = list[tuple[_Answer, Submission]]


class SubmissionFields(TypedDict, total=False):
    """Name what a submission may carry beside class and payload, as in `Producer.prepare`."""

    idempotency_key: str | None
    job_id: str | None
    deadline_s: float | None
    deadline_ts: float | None
    cost_class: str | None


class AsyncProducer:
    """Submit to one queue from one event loop.

    At most `max_batch` submissions go into a call, `in_flight` calls are on their way at once, on a connection of this
    producer's own (in a cluster and behind Sentinels one, in a thread), and `max_waiting` submissions wait for one.
    Close it, or use it with `async with`.
    """

    def __init__(
        self,
        store: Store,
        *,
        max_batch: int = 25,
        in_flight: int = 2,
        max_waiting: int = 10_000,
        clock: Clock | None = None,
    ) -> None:
        _check_bound("max_batch", max_batch, MAX_BATCH)
        _check_bound("in_flight", in_flight, 64)
        _check_bound("max_waiting", max_waiting, 1_000_000)
        self._store = store
        self._connection = store.async_connection()
        self._turn = Turn()
        self._producer = Producer(store, clock)
        self._max_batch = max_batch
        self._in_flight = in_flight
        self._max_waiting = max_waiting
        self._waiting: OrderedDict[_Answer, Submission] = OrderedDict()
        self._sending: set[asyncio.Task[None]] = set()
        self._keys_sent: set[str] = set()
        self._flush_due = False
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def waiting(self) -> int:
        """Give how many submissions wait to be sent."""
        return len(self._waiting)

    def prepare(self, job_class: str, payload: str, **fields: Unpack[SubmissionFields]) -> Submission:
        """Give a submission its id and key without sending it; raises UsageError where a field breaks its bound."""
        return self._producer.prepare(job_class, payload, **fields)

    async def submit(self, job_class: str, payload: str, **fields: Unpack[SubmissionFields]) -> Decision:
        """Ask for one job (fields as in `prepare`); raises StoreUnavailable where no answer came.

        That is also what a full producer raises: nothing was sent, and asking again later is as safe as ever.
        """
        return await self.submit_prepared(self._producer.prepare(job_class, payload, **fields))

    async def submit_prepared(self, submission: Submission) -> Decision:
        """Submit what `prepare` made; like `submit` otherwise."""
        answer = self._ask(submission)
        try:
            return await answer
        except asyncio.CancelledError:
            self._waiting.pop(answer, None)
            raise

    async def submit_many(self, submissions: Iterable[Submission]) -> tuple[Decision, ...]:
        """Decide many in their order, each by itself, together with whatever else is waiting.

        After StoreUnavailable some of them may have been decided: repeat them all.
        """
        answers: list[_Answer] = []
        try:
            for submission in submissions:
                answers.append(self._ask(submission))
            return tuple([await answer for answer in answers])
        finally:
            # A caller that has gone, or was told of a failure, waits for none of them any more.
            for answer in answers:
                self._forget(answer)

    async def submit_or_defer(self, submission: Submission) -> Decision | Deferred:
        """Submit; what may be accepted later comes back as Deferred, to be handed in again with its id and key."""
        try:
            decision = await self.submit_prepared(submission)
        except StoreUnavailable:
            return Deferred(submission, "unanswered", UNANSWERED_RETRY_S)
        if decision.final or decision.retry_after_s is None:
            return decision
        return Deferred(submission, decision.reason, decision.retry_after_s)

    async def close(self) -> None:
        """Take nothing more, send what waits, and return once everything is answered; safe twice."""
        self._closed = True
        self._flush()
        while self._sending:
            await asyncio.wait(self._sending)
            self._flush()
        if self._connection is not None:
            await self._connection.close()

    def _ask(self, submission: Submission) -> _Answer:
        if self._closed:
            raise UsageError("This producer is closed, so nothing was submitted.", "Submit before `close`.")
        if len(self._waiting) >= self._max_waiting:
            raise StoreUnavailable(f"{self._max_waiting} submissions wait already, as many as this producer holds")
        loop = asyncio.get_running_loop()
        answer: _Answer = loop.create_future()
        self._waiting[answer] = submission
        if not self._flush_due and len(self._sending) < self._in_flight:
            # Not at once: whoever else is about to ask in this turn of the loop comes along.
            self._flush_due = True
            loop.call_soon(self._flush)
        return answer

    def _forget(self, answer: _Answer) -> None:
        self._waiting.pop(answer, None)
        if not answer.done():
            answer.cancel()
        elif not answer.cancelled():
            answer.exception()  # seen: a failure beside the one that was raised is not reported as never retrieved

    def _flush(self) -> None:
        self._flush_due = False
        while len(self._sending) < self._in_flight and (batch := self._take()):
            self._keys_sent.update([submission.job_id for _, submission in batch])
            task = asyncio.get_running_loop().create_task(self._send(batch))
            self._sending.add(task)
            task.add_done_callback(self._sent)

    def _take(self) -> _Batch:
        """Take the longest waiting off the queue, but none whose key is on its way: its answer could be overtaken."""
        batch: _Batch = []
        passed_over: _Batch = []
        size = 0
        while self._waiting and len(batch) < self._max_batch and len(passed_over) < _PASSED_OVER_MAX:
            answer, submission = self._waiting.popitem(last=False)
            if submission.job_id in self._keys_sent:
                passed_over.append((answer, submission))
                continue
            size += submission.size
            if batch and size > MAX_BATCH_BYTES:
                self._put_back([(answer, submission)])
                break
            batch.append((answer, submission))
        self._put_back(passed_over)
        return batch

    def _put_back(self, taken: _Batch) -> None:
        for answer, submission in reversed(taken):
            self._waiting[answer] = submission
            self._waiting.move_to_end(answer, last=False)

    async def _send(self, batch: _Batch) -> None:
        try:
            decisions = await self._store.admit_async(self._connection, [one.words() for _, one in batch], self._turn)
            for (answer, _), decision in zip(batch, decisions, strict=True):
                if not answer.done():
                    answer.set_result(decision)
        except Exception as error:  # noqa: BLE001 (whatever it was, each caller must hear of it)
            for answer, _ in batch:
                if not answer.done():
                    answer.set_exception(_own(error))
        finally:
            self._keys_sent.difference_update([submission.job_id for _, submission in batch])
            for answer, _ in batch:
                answer.cancel()  # nothing where it was answered; the loop is ending where it was not

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        if self._waiting and not self._flush_due:
            # Not at once: those who were just answered may ask again in this turn of the loop.
            self._flush_due = True
            task.get_loop().call_soon(self._flush)


def _own(error: Exception) -> Exception:
    """Give a caller an error of its own: one that is raised in many places gathers all their tracebacks."""
    if not isinstance(error, StoreError):
        return error
    own = type(error)(*error.args)
    own.__cause__ = error
    return own


def _check_bound(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise UsageError(f"{name} is {value}, not 1 to {most}.", "The default serves most callers.")
