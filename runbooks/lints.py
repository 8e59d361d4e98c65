"""Refuse runbooks that are well formed and yet would do harm. Each lint is an error, has a name and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runbooks.lint_numbers import own_numbers
from runbooks.model import CLOSED, OnTimeout, Runbook, RunCause, Step
from runbooks.quantity import in_words
from runbooks.values import sample
from runbooks.verbs.burn_down import BurnDown
from runbooks.verbs.canary import Canary
from runbooks.verbs.fix import Fix
from runbooks.verbs.hook import Hook
from runbooks.verbs.reopen import GateCheck, Reopen
from runbooks.verbs.step import OnUnknown, VerbName
from sluicegate.gate import RollbackReason


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold what one lint refuses: file and field, one sentence, and a hint."""

    lint: str
    where: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} ({self.lint})."


# What a lint yields: the field, the sentence without its full stop, the hint.
Fault = tuple[str, str, str]
# These come before those, wherever both stand; the reason is why.
_BEFORE: tuple[tuple[VerbName, VerbName, str], ...] = (
    (VerbName.FREEZE, VerbName.SNAPSHOT, "what is still being changed makes no consistent snapshot"),
    (VerbName.FREEZE, VerbName.DRAIN, "new work would come in behind the drain"),
    (VerbName.SNAPSHOT, VerbName.DRAIN, "what the drain expires could not be restored"),
    (VerbName.SNAPSHOT, VerbName.RECOVER, "what a failed recovery changes could not be restored"),
    (VerbName.DRAIN, VerbName.RECOVER, "workers would meet jobs that cannot make their deadline any more"),
    (VerbName.RECOVER, VerbName.CANARY, "canaries are admitted in recovering only"),
    (VerbName.CANARY, VerbName.BURN_DOWN, "the kept backlog would meet a path that nobody has proved"),
)


def lint(runbook: Runbook) -> tuple[Finding, ...]:
    """Give every finding; a sound runbook has none."""
    return tuple(
        Finding(name, f"{runbook.source}: {where}", message, hint)
        for name, check in LINTS.items()
        for where, message, hint in check(runbook)
    )


def _out_of_order(runbook: Runbook) -> Iterator[Fault]:
    for earlier, later, why in _BEFORE:
        for step in runbook.steps:
            if step.verb is later and earlier not in _verbs(runbook, before=step.seq):
                yield _field(step), f"{later} has no {earlier} before it: {why}", f"Put a {earlier} step before it."


def _step_twice(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        if step.verb in _verbs(runbook, before=step.seq):
            yield _field(step), f"{step.verb} stands twice", "A run does each of its steps once; leave one out."


def _step_after_reopen(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        if VerbName.REOPEN in _verbs(runbook, before=step.seq):
            yield _field(step), f"{step.verb} comes after reopen, which ends the run", "Make reopen the last step."


def _reopen_without_canary(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        for needed in (VerbName.CANARY, VerbName.BURN_DOWN):
            if step.verb is VerbName.REOPEN and needed not in _verbs(runbook, before=step.seq):
                yield _field(step), f"reopen has no {needed} before it", f"Put a {needed} step before it."


def _reopen_without_gate(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        if isinstance(step.params, Reopen):
            present = step.params.gate.all_of if step.params.gate is not None else ()
            missing = [check.value for check in GateCheck if check not in present]
            if missing:
                yield (
                    f"{_field(step)}.gate",
                    f"reopen would open the gate without checking {', '.join(missing)}",
                    f"Write `gate: {{all: [{', '.join(GateCheck)}], no_data: hold}}`.",
                )


def _gate_without_no_data(runbook: Runbook) -> Iterator[Fault]:
    hint = "Write `no_data: hold`: no data is neither a pass nor a fail."
    if runbook.confirm.no_data is None:
        yield "confirm", "the gate does not say what happens without data", hint
    for step in runbook.steps:
        params = step.params
        gate = params.gate if isinstance(params, Reopen) else params if isinstance(params, Canary | BurnDown) else None
        if gate is not None and gate.no_data is None:
            yield _field(step), f"the gate of {step.verb} does not say what happens without data", hint


def _external_without_on_unknown(runbook: Runbook) -> Iterator[Fault]:
    for where, hook in _hooks(runbook):
        if hook.on_unknown is None:
            yield (
                where,
                "the call outside does not say what follows when its outcome is lost",
                "Write `on_unknown: probe`, `retry` (only if a repeat under the same key is safe) or `hold`.",
            )


def _probe_missing(runbook: Runbook) -> Iterator[Fault]:
    for where, hook in _hooks(runbook):
        owner = next((step.params for step in runbook.steps if where == f"{_field(step)}.hook"), None)
        probed = isinstance(owner, Fix) and owner.probe is not None
        if hook.on_unknown is OnUnknown.PROBE and not probed:
            yield where, "a lost outcome is to be probed, but there is no probe", "Add `probe: {url: …}`, or hold."


def _rollback_not_closed(runbook: Runbook) -> Iterator[Fault]:
    if runbook.rollback.to != CLOSED:
        yield (
            "rollback.to",
            f"a rollback would end {runbook.rollback.to!r} and not {CLOSED!r}",
            f"Write `to: {CLOSED}`: only a named person opens a rolled-back gate.",
        )


def _reason_not_listed(runbook: Runbook) -> Iterator[Fault]:
    listed = [reason.value for reason in RollbackReason]
    for reason in dict.fromkeys(runbook.rollback.reasons.values()):
        if reason not in listed:
            yield (
                f"rollback.reasons.{reason}",
                f"{reason!r} is not a rollback reason",
                f"Reasons are {', '.join(listed)}.",
            )


def _cause_without_reason(runbook: Runbook) -> Iterator[Fault]:
    needed = [step.verb.value for step in runbook.steps if step.on_timeout is OnTimeout.ROLLBACK]
    needed += [cause.value for cause in RunCause]
    for cause in needed:
        if cause not in runbook.rollback.reasons:
            yield (
                "rollback.reasons",
                f"{cause} may roll the run back and has no reason",
                "Without a reason nothing is rolled back: put it under one.",
            )


def _max_runtime_too_short(runbook: Runbook) -> Iterator[Fault]:
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


LINTS: dict[str, Callable[[Runbook], Iterator[Fault]]] = {
    "out-of-order": _out_of_order,
    "step-twice": _step_twice,
    "step-after-reopen": _step_after_reopen,
    "reopen-without-canary": _reopen_without_canary,
    "reopen-without-gate": _reopen_without_gate,
    "gate-without-no-data": _gate_without_no_data,
    "external-without-on-unknown": _external_without_on_unknown,
    "probe-missing": _probe_missing,
    "rollback-not-closed": _rollback_not_closed,
    "reason-not-listed": _reason_not_listed,
    "cause-without-reason": _cause_without_reason,
    "max-runtime-too-short": _max_runtime_too_short,
    "own-number": own_numbers,
}


def _verbs(runbook: Runbook, before: int) -> set[VerbName]:
    return {step.verb for step in runbook.steps if step.seq < before}


def _field(step: Step) -> str:
    return f"steps[{step.seq - 1}].{step.verb}"


def _hooks(runbook: Runbook) -> Iterator[tuple[str, Hook]]:
    for step in runbook.steps:
        if isinstance(step.params, Fix) and step.params.hook is not None:
            yield f"{_field(step)}.hook", step.params.hook
    for index, hook in enumerate(runbook.rollback.hooks):
        yield f"rollback.hooks[{index}]", hook
