"""Refuse calls outside that could be made twice, or of which nobody would know what became."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from runbooks.finding import Fault, field_of
from runbooks.model import Runbook
from runbooks.verbs.command import Command
from runbooks.verbs.fix import Fix
from runbooks.verbs.http import Http
from runbooks.verbs.outside import Outside
from runbooks.verbs.step import OnUnknown, StepParams
from sluicegate.run_steps import ROLLBACK_VERB

_RUN_ID = "{{run.id}}"


@dataclass(frozen=True, slots=True)
class _Call:
    """Hold what of a call outside the lints look at; without a key it has one of its own place."""

    where: str
    on_unknown: OnUnknown | None
    probed: bool
    key: str | None


def external_without_on_unknown(runbook: Runbook) -> Iterator[Fault]:
    """Yield each call without a rule for a lost outcome."""
    for call in _calls(runbook):
        if call.on_unknown is None:
            yield (
                call.where,
                "the call outside does not say what follows when its outcome is lost",
                "Write `on_unknown: probe`, `retry` (only if a repeat under the same key is safe) or `hold`.",
            )


def probe_missing(runbook: Runbook) -> Iterator[Fault]:
    """Yield each call that is to be probed and has nobody to ask."""
    for call in _calls(runbook):
        if call.on_unknown is OnUnknown.PROBE and not call.probed:
            yield call.where, "a lost outcome is to be probed, but there is no probe", "Add `probe: {url: …}`, or hold."


def key_without_run(runbook: Runbook) -> Iterator[Fault]:
    """Yield each idempotency key that is the same for every run: the next run's call would be taken for a repeat."""
    for call in _calls(runbook):
        if call.key is not None and _RUN_ID not in call.key.replace(" ", ""):
            yield (
                f"{call.where}.idempotency_key",
                "every run would call under the same key, and the next one's call would be taken for a repeat",
                "Write `{{ run.id }}/NAME`.",
            )


def key_twice(runbook: Runbook) -> Iterator[Fault]:
    """Yield each call under a key that another call of the run has: it would be taken for a repeat of that one."""
    seen: dict[str, str] = {}
    for call in _calls(runbook):
        if call.key is None:
            continue
        first = seen.setdefault(call.key.replace(" ", ""), call.where)
        if first != call.where:
            yield f"{call.where}.idempotency_key", f"{first} has the same key", "Give each call a key of its own."


def _calls(runbook: Runbook) -> Iterator[_Call]:
    for step in runbook.steps:
        yield from _call(field_of(step), step.params)
    hooks = runbook.rollback.hooks if runbook.rollback is not None else ()
    for index, hook in enumerate(hooks):
        for call in _call(f"rollback.hooks[{index}]", hook):
            # A program of a rollback has a key by its name, one of a step by its place.
            yield replace(call, key=f"{_RUN_ID}/{ROLLBACK_VERB}/{hook.name}") if isinstance(hook, Command) else call


def _call(where: str, params: StepParams) -> Iterator[_Call]:
    match params:
        case Fix(hook=hook, probe=probe) if hook is not None:
            yield _Call(f"{where}.hook", hook.on_unknown, probe is not None, hook.idempotency_key.text)
        case Http(hook=hook, probe=probe):
            yield _Call(where, hook.on_unknown, probe is not None, hook.idempotency_key.text)
        case Command(on_unknown=on_unknown, probe=probe):
            yield _Call(where, on_unknown, probe is not None, None)
        case Outside(on_unknown=on_unknown):
            yield _Call(where, on_unknown, probed=True, key=None)
        case _:
            return
