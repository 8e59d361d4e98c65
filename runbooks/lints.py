"""Refuse runbooks that are well formed and yet would do harm. Each lint is an error, has a name and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from runbooks import lint_endings as endings
from runbooks import lint_outside as outside
from runbooks.finding import Fault, Finding, field_of
from runbooks.lint_numbers import own_numbers, page_too_often
from runbooks.model import Runbook
from runbooks.verbs.approve import Approve
from runbooks.verbs.burn_down import BurnDown
from runbooks.verbs.canary import Canary
from runbooks.verbs.reopen import GateCheck, Reopen, ReopenGate
from runbooks.verbs.step import StepParams, VerbName
from runbooks.verbs.wait_for import WaitFor
from runbooks.watch import Watch

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


# What a run may do more than once; each has its own place in the journal.
_MAY_REPEAT = frozenset({VerbName.HTTP, VerbName.COMMAND, VerbName.WAIT_FOR, VerbName.NOTIFY})


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
            if step.verb == later and earlier not in _verbs(runbook, before=step.seq):
                yield field_of(step), f"{later} has no {earlier} before it: {why}", f"Put a {earlier} step before it."


def _step_twice(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        if step.verb not in _MAY_REPEAT and step.verb in _verbs(runbook, before=step.seq):
            yield field_of(step), f"{step.verb} stands twice", "A run does each of its steps once; leave one out."


def _step_after_reopen(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        if VerbName.REOPEN in _verbs(runbook, before=step.seq):
            yield field_of(step), f"{step.verb} comes after reopen, which ends the run", "Make reopen the last step."


def _reopen_without_canary(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        for needed in (VerbName.CANARY, VerbName.BURN_DOWN):
            if step.verb == VerbName.REOPEN and needed not in _verbs(runbook, before=step.seq):
                yield field_of(step), f"reopen has no {needed} before it", f"Put a {needed} step before it."


def _reopen_without_gate(runbook: Runbook) -> Iterator[Fault]:
    for step in runbook.steps:
        if isinstance(step.params, Reopen):
            present = step.params.gate.all_of if step.params.gate is not None else ()
            missing = [check.value for check in GateCheck if check not in present]
            if missing:
                yield (
                    f"{field_of(step)}.gate",
                    f"reopen would open the gate without checking {', '.join(missing)}",
                    f"Write `gate: {{all: [{', '.join(GateCheck)}], no_data: hold}}`.",
                )


def _gate_without_no_data(runbook: Runbook) -> Iterator[Fault]:
    hint = "Write `no_data: hold`: no data is neither a pass nor a fail."
    if runbook.confirm.no_data is None:
        yield "confirm", "the gate does not say what happens without data", hint
    for step in runbook.steps:
        gate = _gate_of(step.params)
        if gate is not None and gate.no_data is None:
            yield field_of(step), f"the gate of {step.verb} does not say what happens without data", hint


def _gate_of(params: StepParams) -> Canary | BurnDown | ReopenGate | Watch | None:
    match params:
        case Canary() | BurnDown():
            return params
        case Reopen(gate=gate) | Approve(gate=gate):
            return gate
        case WaitFor(watch=watch):
            return watch
        case _:
            return None


LINTS: dict[str, Callable[[Runbook], Iterator[Fault]]] = {
    "out-of-order": _out_of_order,
    "step-twice": _step_twice,
    "step-after-reopen": _step_after_reopen,
    "reopen-without-canary": _reopen_without_canary,
    "reopen-without-gate": _reopen_without_gate,
    "gate-without-no-data": _gate_without_no_data,
    "external-without-on-unknown": outside.external_without_on_unknown,
    "probe-missing": outside.probe_missing,
    "key-without-run": outside.key_without_run,
    "key-twice": outside.key_twice,
    "verb-out-of-place": endings.verb_out_of_place,
    "rollback-missing": endings.rollback_missing,
    "rollback-beside": endings.rollback_beside,
    "end-with-lock": endings.end_with_lock,
    "rollback-not-closed": endings.rollback_not_closed,
    "reason-not-listed": endings.reason_not_listed,
    "cause-without-reason": endings.cause_without_reason,
    "max-runtime-too-short": endings.max_runtime_too_short,
    "for-past-timeout": endings.for_past_timeout,
    "own-number": own_numbers,
    "page-too-often": page_too_often,
}


def _verbs(runbook: Runbook, before: int) -> set[str]:
    return {step.verb for step in runbook.steps if step.seq < before}
