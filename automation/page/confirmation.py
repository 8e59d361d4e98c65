"""Say what a deed will do before it is done: in the words of the commands, and by the plan of what runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from automation.page import foretell
from automation.page.deeds import LABELS, Deed, Target
from automation.page.reading import Reading
from automation.sentences import aborted_said, opening_said, rolls_back_said
from runbooks.context import NO_RUN, Context
from runbooks.model import Runbook
from runbooks.plan import step_text
from runbooks.quantity import in_words
from sluicegate.gate import DrainState, PinReason
from sluicegate.gate import Runbook as LockHolder
from sluicegate.gate_events import Order
from sluicegate.gate_sentences import order_said, unblocks
from sluicegate.http_address import masked
from sluicegate.job import Effects
from sluicegate.policy import Figures, Thresholds, decide
from sluicegate.queue_sentences import job_lines
from sluicegate.reconcile import LedgerEntry, ledger_verdict
from sluicegate.remedies import BY_NAME
from sluicegate.run_journal import waits_of
from sluicegate.run_sentences import true_at
from sluicegate.settings import Settings
from sluicegate.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Hold what stands on the page before a deed: what will happen, the plan, what is known, or why it cannot be done.

    `seen` names the state that it was made for: the deed is refused where another one stands by then.
    """

    deed: Deed
    target: Target
    title: str
    happens: tuple[str, ...]
    plan: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    refusal: str = ""
    hint: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Grounds:
    """Hold what a confirmation is made from; `job` is the job's record where the deed is done to one."""

    reading: Reading
    runbooks: Mapping[str, Runbook]
    settings: Settings
    job: Mapping[str, Any] | None = None

    @property
    def telemetry(self) -> Telemetry:
        return self.reading.telemetry


def confirmation(deed: Deed, target: Target, grounds: Grounds) -> Confirmation:
    """Say what the deed would do by what is known now."""
    if deed.order is not None:
        return _order(deed, deed.order, grounds)
    if deed is Deed.RUN:
        return _run(target, grounds)
    if deed is Deed.APPROVE:
        return _approve(target, grounds)
    if deed is Deed.ABORT:
        return _abort(target, grounds)
    if deed in (Deed.HOLD_RUN, Deed.RESUME):
        return _hold(deed, target, grounds)
    return _job(deed, target, grounds)


def _order(deed: Deed, order: Order, grounds: Grounds) -> Confirmation:
    telemetry = grounds.telemetry
    foretold = foretell.ordered(order, telemetry)
    said = order_said(order, foretold.answer, telemetry)
    title = f"{LABELS[deed]}: queue {telemetry.queue}"
    seen = _gate_seen(telemetry)
    if not foretold.moves:
        return Confirmation(deed, Target(), title, (), refusal=said.sentence, hint=said.hint, seen=seen)
    happens = [said.sentence]
    if foretold.state.rolling_back and telemetry.gate.run is not None:
        happens += _rollback(telemetry.gate.run.runbook, telemetry.gate.run.run_id, grounds)
    if order is Order.RELEASE:
        happens += _released(telemetry, grounds.settings.contract.thresholds)
    return Confirmation(deed, Target(), title, tuple(happens), seen=seen)


def _released(telemetry: Telemetry, thresholds: Thresholds) -> Iterator[str]:
    """Say what the controller makes of a gate that is pinned no more."""
    gate = replace(telemetry.gate, pin=None, pin_note="")
    loose = replace(telemetry, gate=gate)
    decision = decide(Figures.of(loose), thresholds)
    yield f"By the figures of now the controller would then decide: {decision.action} ({decision.reason})."
    if gate.drain_state == DrainState.REJECT_NEW and gate.rollback_reason is not None:
        loose = replace(loose, gate=replace(gate, rollback_reason=None))
    yield from unblocks(loose)


def _rollback(runbook: str, run: str, grounds: Grounds) -> Iterator[str]:
    """Say what the rollback of a run calls, in its order."""
    book = grounds.runbooks.get(runbook)
    context = Context(grounds.settings, run)
    calls = book.rollback.lines(context) if book is not None and book.rollback is not None else ()
    yield "The run's fence is revoked: nothing more of its steps is written."
    for call in calls:
        yield f"Then: {call}."


def _run(target: Target, grounds: Grounds) -> Confirmation:
    telemetry = grounds.telemetry
    book = grounds.runbooks.get(target.runbook)
    if book is None:
        known = ", ".join(sorted(grounds.runbooks))
        return Confirmation(
            Deed.RUN, target, "Start a run", (), refusal=f"There is no such runbook; there are {known}."
        )
    title = f"Start {book.name} on queue {telemetry.queue}"
    if book.name not in set(LockHolder):
        said_so = f"{book.name} runs beside a recovery, and is started by its command."
        hint = f"`sluicegate automation run {book.name} {BY_NAME}`"
        return Confirmation(Deed.RUN, target, title, (), refusal=said_so, hint=hint)
    foretold = foretell.run_opened(book.name, telemetry)
    if not foretold.moves:
        said = opening_said(foretold.answer)
        return Confirmation(Deed.RUN, target, title, (), refusal=said.sentence, hint=said.hint)
    context = Context(grounds.settings, NO_RUN)
    return Confirmation(
        Deed.RUN,
        target,
        title,
        (f"A run is opened. With it the gate is {foretold.answer.drain_state}, and pinned no more.", book.summary),
        tuple(f"{step.seq} {step.verb}: {step_text(step, book, context)}" for step in book.steps),
        seen=_gate_seen(telemetry),
    )


def _approve(target: Target, grounds: Grounds) -> Confirmation:
    title = f"Approve step {target.step} of run {target.run}"
    history = grounds.reading.live(target.run)
    waits = waits_of(history)
    if history is None or waits is None or waits.step != target.step:
        said = f"Run {target.run} does not wait for a person at step {target.step}, so nothing can be approved."
        return Confirmation(Deed.APPROVE, target, title, (), refusal=said)
    book = grounds.runbooks.get(history.run.runbook)
    context = Context(grounds.settings, target.run)
    later = [step for step in book.steps if step.seq > history.run.step] if book is not None else []
    return Confirmation(
        Deed.APPROVE,
        target,
        title,
        (f"You say that {true_at(target.step)}. The run goes on with:",),
        tuple(f"{step.seq} {step.verb}: {step_text(step, book, context)}" for step in later if book is not None),
        seen=f"{target.run}/{history.run.step} {target.step}",
    )


def _abort(target: Target, grounds: Grounds) -> Confirmation:
    telemetry, title = grounds.telemetry, f"Abort run {target.run}"
    gate = telemetry.gate
    if any(run.run_id == target.run for run in gate.besides):
        stays = "The run ends where it is. It holds no lock, so the gate stays as it is."
        return Confirmation(Deed.ABORT, target, title, (stays,), seen=target.run)
    if gate.run is None or gate.run.run_id != target.run:
        said = f"Run {target.run} is not live, so there is nothing to abort."
        return Confirmation(Deed.ABORT, target, title, (), refusal=said)
    foretold = foretell.ordered(Order.ABORT, telemetry)
    if not foretold.moves:
        rolls = rolls_back_said(target.run)
        return Confirmation(Deed.ABORT, target, title, (), refusal=rolls.sentence, hint=rolls.hint)
    said_then = aborted_said(foretold.answer)
    happens = (said_then.sentence, *_rollback(gate.run.runbook, target.run, grounds), said_then.hint)
    return Confirmation(Deed.ABORT, target, title, happens, seen=target.run)


def _hold(deed: Deed, target: Target, grounds: Grounds) -> Confirmation:
    title = f"{LABELS[deed]}: {target.run}"
    run = grounds.reading.history.run if grounds.reading.history is not None else None
    if run is None or run.run_id != target.run or run.runbook != LockHolder.DRAIN_AND_RECOVER or run.state != "running":
        said = f"Run {target.run} is no live recovery, so it can't be held or go on."
        return Confirmation(deed, target, title, (), refusal=said)
    if deed is Deed.HOLD_RUN:
        most = in_words(grounds.settings.contract.timings.hold_max_s)
        happens = (
            "The run stays where it is: no step ends or begins, and no share grows.",
            "Its gates go on being measured, and a breach rolls back.",
            f"A hold that nobody ends within {most} is the run's rollback; its time counts for no other limit.",
        )
        return Confirmation(deed, target, title, happens, seen=target.run)
    if not run.held:
        return Confirmation(deed, target, title, (), refusal=f"Run {target.run} is not held.")
    goes_on = f"The run goes on at step {run.verb}." if run.verb else "The run goes on with its first step."
    return Confirmation(deed, target, title, (goes_on,), seen=target.run)


_VERDICT_SAYS = {
    Deed.RETRY: "You say that a repeat is safe: it is ready again under the same idempotency key, or expired where its "
    "deadline is too near.",
    Deed.FAIL: "You say that it was not done and will not be: it is failed, which is final.",
    Deed.SUCCEED: "You say that it was done: it is succeeded, which is final.",
}


def _job(deed: Deed, target: Target, grounds: Grounds) -> Confirmation:
    title = f"{LABELS[deed]}: job {target.job}"
    body = grounds.job
    if body is None:
        return Confirmation(deed, target, title, (), refusal=f"The queue has no job {target.job}.")
    job: Mapping[str, str] = body["job"]
    state = job.get("state", "")
    wanted = ("unknown",) if deed is Deed.RECONCILE else ("unknown", "blocked")
    known = tuple(job_lines(target.job, body))
    if state not in wanted:
        said = f"Job {target.job} is {state}: only one that is {' or '.join(wanted)} can be settled so."
        return Confirmation(deed, target, title, (), known=known, refusal=said)
    happens = _asked_about(body, grounds) if deed is Deed.RECONCILE else _said_of(deed, job, grounds)
    return Confirmation(deed, target, title, tuple(happens), known=known, seen=job.get("fence", ""))


def _asked_about(body: Mapping[str, Any], grounds: Grounds) -> Iterator[str]:
    job: Mapping[str, str] = body["job"]
    ledger: Mapping[str, str] = body.get("ledger") or {}
    known_start = job.get("restored_fence") != job.get("fence")
    entry = LedgerEntry("confirmed" in ledger, ledger.get("fence", ""), known_start)
    verdict, why = ledger_verdict(entry, job.get("fence", ""), _effects(job, grounds))
    yield f"The ledger is asked. What it has now says: {verdict}, for {why}."
    url = grounds.settings.reconcile.http_url
    if url is not None:
        yield f"Where the ledger can't tell, {masked(url)} is asked about the key."
    yield "Where nobody can tell, it stays unknown and nothing is changed."


def _said_of(deed: Deed, job: Mapping[str, str], grounds: Grounds) -> Iterator[str]:
    yield _VERDICT_SAYS[deed]
    if deed is Deed.RETRY and _effects(job, grounds) is Effects.UNSAFE:
        yield "Its class is unsafe to repeat: if its call did happen, its effect happens twice."


def _effects(job: Mapping[str, str], grounds: Grounds) -> Effects:
    declared = grounds.settings.contract.classes.get(job.get("class", ""))
    return declared.effects if declared is not None else Effects.KEYED


def _gate_seen(telemetry: Telemetry) -> str:
    """Name a state of the gate: its last move, the duplicates that were known, and the pin that it had."""
    pin = telemetry.gate.pin or ""
    known = pin if pin in set(PinReason) else ""
    return f"{telemetry.gate.seen}/{known}"
