"""Write runbooks and plans as plain text or as values for JSON; the words are the plan's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from runbooks.context import Context
from runbooks.model import Runbook
from runbooks.plan import Plan, PlanLine, rollback_text, step_text
from runbooks.quantity import plain
from runbooks.verdict import CheckResult, any_of, overall


def plan_text(plan: Plan) -> str:
    """Write a plan for people."""
    return "\n".join(_plan_lines(plan))


def plan_values(plan: Plan) -> dict[str, Any]:
    """Give a plan as values for JSON; the verdict of each gate as a whole is added."""
    body = asdict(plan)
    body["confirm_verdict"] = any_of(plan.confirm)
    for line, values in zip(plan.lines, body["lines"], strict=True):
        values["figures"] = dict(line.figures)
        values["verdict"] = overall(line.gate) if line.gate else None
    return body


def runbook_text(runbook: Runbook, context: Context) -> str:
    """Write a runbook for people, its values filled in by the settings."""
    return "\n".join(_runbook_lines(runbook, context))


def check_text(check: CheckResult) -> str:
    """Write one check on a line: verdict, name, value, bound, why."""
    value = "no sample" if check.value is None else plain(round(check.value, 3))
    why = f" ({check.why})" if check.why else ""
    return f"{check.verdict}: {check.name} is {value}, bound {check.bound}{why}"


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.runbook} {plan.digest} on queue {plan.queue}, contract {plan.settings_digest}"
    yield f"The gate is {plan.drain_state}. This is a plan: nothing is written."
    yield ""
    yield f"Would an alert start it now? {'Yes.' if plan.would_start else 'No.'}"
    for obstacle in plan.why_not:
        yield f"  {obstacle.rule}: {obstacle.text}"
        yield f"    to go on: {obstacle.unblock}"
    if plan.unseen:
        yield f"  not seen by this user: {', '.join(plan.unseen)}"
    yield f"Confirmed by any of: {any_of(plan.confirm)}"
    for check in plan.confirm:
        yield f"  {check_text(check)}"
    for note in plan.notes:
        yield f"Note: {note}"
    if plan.expired_by_drain is not None:
        yield f"The drain would expire now: {_counts(plan.expired_by_drain.items())}"
    for line in plan.lines:
        yield ""
        yield from _line(line)


def _line(line: PlanLine) -> Iterator[str]:
    yield f"{line.seq}. {line.verb}: {line.text}"
    if line.figures:
        yield f"   now: {_counts(line.figures)}"
    if line.gate:
        yield f"   gate now: {overall(line.gate)}"
        for check in line.gate:
            yield f"     {check_text(check)}"
    yield f"   rollback from here: {line.rollback}"


def _counts(pairs: Iterable[tuple[str, float | None]]) -> str:
    words = [f"{name} {'no sample' if value is None else plain(round(value, 3))}" for name, value in pairs]
    return ", ".join(words) if words else "none"


def _runbook_lines(runbook: Runbook, context: Context) -> Iterator[str]:
    yield f"{runbook.name} {runbook.digest} ({runbook.source})"
    yield runbook.summary
    yield ""
    yield f"owner        {runbook.owner}"
    yield f"max runtime  {runbook.max_runtime.text}"
    matchers = ", ".join(f"{label} = {' or '.join(values)}" for label, values in runbook.trigger.alerts.items())
    yield f"alerts       {matchers}; the label {runbook.trigger.queue_label} names the queue"
    conditions = " or ".join(condition.worded(context) for condition in runbook.confirm.any_of)
    yield f"confirmed by {conditions}"
    yield f"tells        {', '.join(runbook.notify.to)} when {', '.join(runbook.notify.when)}"
    for step in runbook.steps:
        yield ""
        yield f"{step.seq}. {step.verb}: {step_text(step, runbook, context)}"
        yield f"   rollback from here: {rollback_text(step, runbook, context)}"
