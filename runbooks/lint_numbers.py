"""Refuse numbers that the contract already holds, for the functions go by it, and those that call people too often."""

from __future__ import annotations

from collections.abc import Iterator

from runbooks.finding import Fault, field_of
from runbooks.model import Runbook, Step
from runbooks.values import sample
from runbooks.verbs.approve import Approve
from runbooks.verbs.burn_down import BurnDown
from runbooks.verbs.canary import Canary
from runbooks.verbs.fix import Fix
from runbooks.verbs.reopen import Reopen

_LEAST_PAGE_S = 10.0


def own_numbers(runbook: Runbook) -> Iterator[tuple[str, str, str]]:
    """Yield each value that must be the contract's own and is written another way."""
    for step in runbook.steps:
        for field, text, wanted in _governed(step):
            if text.replace(" ", "") != wanted.replace(" ", ""):
                yield (
                    f"steps[{step.seq - 1}].{step.verb}.{field}",
                    f"{text!r} is a number of its own, where the contract's is the one in force",
                    f'Write `{field}: "{wanted}"`.',
                )


def _governed(step: Step) -> tuple[tuple[str, str, str], ...]:
    """Give (field, as written, as it must be) of what the queue's functions and the controller go by."""
    match step.params:
        case Canary() as canary:
            return (
                ("required", canary.required.text, "{{ contract.canaries_required }}"),
                ("failures_max", canary.failures_max.text, "{{ contract.canary_failures_max }}"),
                ("timeout", step.timeout.text, "{{ contract.proof_s }}s"),
            )
        case BurnDown() as burn_down:
            return (
                ("window", burn_down.window.text, "{{ contract.timings.burn_down_window_s }}s"),
                ("min_age_fall", burn_down.min_age_fall.text, "{{ contract.burn_down_min_age_fall_s }}s"),
                ("min_backlog_fall", burn_down.min_backlog_fall.text, "{{ contract.burn_down_min_backlog_fall }}"),
                ("timeout", step.timeout.text, "{{ contract.timings.burn_down_max_s }}s"),
            )
        case Reopen() as reopen:
            return (
                ("ramp", reopen.ramp.text, "{{ contract.ramp_percents }}"),
                ("ramp_step", reopen.ramp_step.text, "{{ contract.timings.ramp_step_s }}s"),
                ("timeout", step.timeout.text, "{{ contract.timings.gate_timeout_s }}s"),
            )
        case _:
            return ()


def page_too_often(runbook: Runbook) -> Iterator[Fault]:
    """Yield each step that would call people more often than anybody can hear them."""
    for step in runbook.steps:
        match step.params:
            case Fix(page_every=page_every) | Approve(page_every=page_every) if (
                page_every.resolve(sample()) < _LEAST_PAGE_S
            ):
                yield (
                    f"{field_of(step)}.page_every",
                    f"it would call people every {page_every.text}",
                    f"Write {_LEAST_PAGE_S:g}s or more.",
                )
            case _:
                continue
