"""Do what was confirmed, through the calls that the commands make, and say in their words what became of it."""

from __future__ import annotations

import asyncio

from automation.page.deeds import Deed, Target
from automation.page.words import clock
from automation.sentences import aborted_said, not_waiting_said, opening_said, rolls_back_said
from automation.starting import start_arguments
from runbooks.model import Runbook
from sluicegate.console import Person
from sluicegate.gate_events import Order
from sluicegate.gate_sentences import Said, order_said
from sluicegate.reconcile import Reconciled, Verdict, by_person
from sluicegate.reconciler import Reconciler
from sluicegate.settings import ReconcileSettings
from sluicegate.store import Store


class Doing:
    """Carry deeds out on one queue; each method raises StoreError where the queue's server does not answer."""

    def __init__(self, store: Store, runbooks: dict[str, Runbook], reconcile: ReconcileSettings) -> None:
        self._store = store
        self._runbooks = runbooks
        self._reconciler = Reconciler(store, reconcile)

    async def do(self, deed: Deed, target: Target, who: Person, seen: str) -> Said:
        """Do it in this person's name; `seen` is what its confirmation was made for."""
        if deed is Deed.RECONCILE:
            return await self._ask(target.job, who)
        return await asyncio.to_thread(self._do, deed, target, who, seen)

    def _do(self, deed: Deed, target: Target, who: Person, seen: str) -> Said:
        if deed.order is not None:
            return self._order(deed.order, who, "" if deed.tightens else seen.rpartition("/")[0])
        if deed.verdict is not None:
            return self._settle(target.job, deed.verdict, who, seen)
        if deed is Deed.RUN:
            return self._run(target.runbook, who)
        if deed is Deed.APPROVE:
            return self._approve(target, who)
        if deed is Deed.HOLD_RUN:
            return self._hold(target.run, who)
        return self._resume(target.run, who) if deed is Deed.RESUME else self._abort(target.run, who)

    def _order(self, order: Order, who: Person, seen: str) -> Said:
        answer = self._store.order(order, who.name, who.reason, seen=seen)
        return order_said(order, answer, self._store.observe())

    def _run(self, runbook: str, who: Person) -> Said:
        answer = self._store.open_run(start_arguments(self._runbooks[runbook], who.name, who.reason))
        said = opening_said(answer)
        return Said(answer.answer == "moved", said.sentence, said.hint)

    def _approve(self, target: Target, who: Person) -> Said:
        run, step = target.run, target.step
        match self._store.approve(run, step, actor=who.name, reason=who.reason):
            case "moved":
                return Said(True, f"Step {step} of run {run} is approved.")
            case "unchanged":
                return Said(True, f"Step {step} of run {run} was approved before; nothing was changed.")
            case "not_waiting":
                return Said(False, not_waiting_said(run, step))
            case _:
                return Said(False, f"Run {run} is not live, so nothing was changed.")

    def _hold(self, run: str, who: Person) -> Said:
        answer, until_ms = self._store.hold(run, None, actor=who.name, reason=who.reason)
        if answer != "moved":
            return Said(False, f"Run {run} is no live recovery, so nothing was changed.")
        return Said(
            True, f"Run {run} is held until {clock(until_ms)}. Then it rolls back, unless somebody ends the hold."
        )

    def _resume(self, run: str, who: Person) -> Said:
        match self._store.resume(run, actor=who.name, reason=who.reason):
            case "moved":
                return Said(True, f"Run {run} goes on.")
            case "unchanged":
                return Said(False, f"Run {run} is not held, so nothing was changed.")
            case "expired":
                return Said(False, f"The hold of run {run} has expired: it rolls back.")
            case _:
                return Said(False, f"Run {run} is no live recovery, so nothing was changed.")

    def _abort(self, run: str, who: Person) -> Said:
        gate = self._store.observe().gate
        if any(beside.run_id == run for beside in gate.besides):
            moved = self._store.abort_beside(run, actor=who.name, reason=who.reason) == "moved"
            said = f"Run {run} is ended; the gate stays as it is." if moved else f"Run {run} had ended by itself."
            return Said(moved, said)
        if gate.run is None or gate.run.run_id != run:
            return Said(False, f"Run {run} is not live, so nothing was changed.")
        answer = self._store.order(Order.ABORT, who.name, who.reason, run=run)
        if answer.answer == "gone":
            return Said(False, f"Run {run} had ended by itself.")
        if answer.answer == "moved":
            aborted = aborted_said(answer)
            return Said(True, aborted.sentence, aborted.hint)
        rolls = rolls_back_said(run)
        return Said(False, rolls.sentence, rolls.hint)

    def _settle(self, job: str, verdict: Verdict, who: Person, fence: str) -> Said:
        answer = by_person(self._store, job, verdict, actor=who.name, reason=who.reason, fence=fence)
        return _settled(job, answer)

    async def _ask(self, job: str, who: Person) -> Said:
        answer, finding = await self._reconciler.one(job, f"{who.name}: {who.reason}")
        if answer.answer == "unclear":
            why = f": {finding.why}" if finding is not None else ""
            return Said(False, f"Nobody can tell what became of job {job}{why}. It stays unknown.")
        return _settled(job, answer)


def _settled(job: str, answer: Reconciled) -> Said:
    match answer.answer:
        case "moved":
            return Said(True, f"Job {job} is {answer.state} now.")
        case "gone":
            return Said(False, f"The queue has no job {job}; nothing was changed.")
        case "stale":
            return Said(False, f"Job {job} was started again since you looked; nothing was changed.")
        case _:
            return Said(False, f"Job {job} is {answer.state}; nothing was changed.")
