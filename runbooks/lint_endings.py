"""Refuse what ends a run otherwise than closed and with a reason, or what its runs may not do at all."""

from __future__ import annotations

from collections.abc import Iterator

from runbooks.finding import Fault, field_of
from runbooks.model import OnTimeout, Runbook, RunCause
from runbooks.quantity import in_words
from runbooks.values import sample
from runbooks.verbs.approve import Approve
from runbooks.verbs.reopen import Reopen
from runbooks.verbs.rollback import CLOSED
from runbooks.verbs.step import Holder, NoData
from runbooks.verbs.wait_for import WaitFor
from sluicegate.gate import RollbackReason
from sluicegate.gate import Runbook as LockHolder


def rollback_not_closed(runbook: Runbook) -> Iterator[Fault]:
    """Yield a rollback that ends anywhere but closed."""
    if runbook.rollback is not None and runbook.rollback.to != CLOSED:
        yield (
            "rollback.to",
            f"a rollback would end {runbook.rollback.to!r} and not {CLOSED!r}",
            f"Write `to: {CLOSED}`: only a named person opens a rolled-back gate.",
        )


def reason_not_listed(runbook: Runbook) -> Iterator[Fault]:
    """Yield each reason outside the list."""
    listed = [reason.value for reason in RollbackReason]
    reasons = runbook.rollback.reasons.values() if runbook.rollback is not None else ()
    for reason in dict.fromkeys(reasons):
        if reason not in listed:
            yield (
                f"rollback.reasons.{reason}",
                f"{reason!r} is not a rollback reason",
                f"Reasons are {', '.join(listed)}.",
            )


def cause_without_reason(runbook: Runbook) -> Iterator[Fault]:
    """Yield each cause that may roll the run back and leads to no reason."""
    if runbook.rollback is None:
        return
    needed = [step.verb for step in runbook.steps if _may_roll_back(step.on_timeout, step.params)]
    needed += [cause.value for cause in RunCause]
    for cause in dict.fromkeys(needed):
        if cause not in runbook.rollback.reasons:
            yield (
                "rollback.reasons",
                f"{cause} may roll the run back and has no reason",
                "Without a reason nothing is rolled back: put it under one.",
            )


def rollback_missing(runbook: Runbook) -> Iterator[Fault]:
    """Yield a runbook that holds the lock and does not say how it ends when it fails."""
    if runbook.rollback is None and not runbook.beside:
        yield (
            "rollback",
            f"runs of {runbook.name} hold the queue's lock and would have no way to end when they fail",
            "Add `rollback: {to: closed, reasons: {…}}`.",
        )


def rollback_beside(runbook: Runbook) -> Iterator[Fault]:
    """Yield what asks for a rollback where there can be none: a run without the lock moves only admit → reject_new."""
    if not runbook.beside:
        return
    hint = f"Write `hold` or `end`; only {' and '.join(LockHolder)} hold the lock and roll back."
    why = "a run that holds no lock can roll nothing back"
    if runbook.rollback is not None:
        yield "rollback", why, f"Leave `rollback` out; only {' and '.join(LockHolder)} have one."
    for step in runbook.steps:
        if step.on_timeout is OnTimeout.ROLLBACK:
            yield f"{field_of(step)}.on_timeout", why, hint
        if _no_data(step.params) is NoData.ROLLBACK:
            yield f"{field_of(step)}.no_data", why, hint


def end_with_lock(runbook: Runbook) -> Iterator[Fault]:
    """Yield each step that would end a lock-holding run with the gate as it is, unpinned and without a reason."""
    for step in runbook.steps:
        if step.on_timeout is OnTimeout.END and not runbook.beside:
            yield (
                f"{field_of(step)}.on_timeout",
                "a run that holds the lock ends closed and with a reason, not as it is",
                "Write `rollback` or `hold`.",
            )


def verb_out_of_place(runbook: Runbook) -> Iterator[Fault]:
    """Yield each step that runs of this runbook may not do: the functions would refuse it."""
    for step in runbook.steps:
        match step.params.holder:
            case Holder.RECOVERY if runbook.name != LockHolder.DRAIN_AND_RECOVER:
                message = f"{step.verb} is for {LockHolder.DRAIN_AND_RECOVER} alone: it moves the gate or the jobs"
            case Holder.BESIDE if not runbook.beside:
                message = f"{step.verb} is for runs that hold no lock"
            case _:
                continue
        yield field_of(step), message, "Leave the step out: it would be refused."


def max_runtime_too_short(runbook: Runbook) -> Iterator[Fault]:
    """Yield a whole time that is shorter than all steps together."""
    context = sample()
    steps_s = sum(step.timeout.resolve(context) for step in runbook.steps)
    for step in runbook.steps:
        if isinstance(step.params, Reopen):
            steps_s += step.params.ramp_step.resolve(context) * len(step.params.ramp.resolve(context))
    if runbook.max_runtime.resolve(context) < steps_s:
        yield (
            "max_runtime",
            f"{runbook.max_runtime.text} is shorter than all steps together, {in_words(steps_s)}",
            "A run that keeps every timeout must fit in.",
        )


def for_past_timeout(runbook: Runbook) -> Iterator[Fault]:
    """Yield each wait that can never pass: what must hold for longer than the step may take."""
    context = sample()
    for step in runbook.steps:
        held_s = step.params.for_ms(context) / 1000 if isinstance(step.params, WaitFor) else 0.0
        if held_s >= step.timeout.resolve(context):
            yield (
                f"{field_of(step)}.for",
                f"it must hold for {in_words(held_s)}, and the step may take {step.timeout.text}",
                "Give the step more time than that.",
            )


def _may_roll_back(on_timeout: OnTimeout, params: object) -> bool:
    watched = isinstance(params, WaitFor) or (isinstance(params, Approve) and params.gate is not None)
    return on_timeout is OnTimeout.ROLLBACK or watched


def _no_data(params: object) -> NoData | None:
    if isinstance(params, WaitFor):
        return params.watch.no_data
    return params.gate.no_data if isinstance(params, Approve) and params.gate is not None else None
