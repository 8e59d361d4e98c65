"""Say what a run would do, step by step, and what stands in its way now. Pure: planning changes nothing.

A line's text depends on the runbook, the settings and the run's id alone, so that the run's journal holds the very same
lines; figures that change by themselves stand in fields of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runbooks.context import NO_RUN, Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.model import OnTimeout, Runbook, Step
from runbooks.quantity import in_words
from runbooks.start import NOTHING_HEARD, Heard, Obstacle, obstacles
from runbooks.verbs.rollback import FIRST_PLACE
from runbooks.verbs.step import VerbName
from runbooks.verdict import CheckResult
from sluicegate.gate import PinReason
from sluicegate.remedies import QUEUE_APPLY
from sluicegate.settings import Settings
from sluicegate.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class PlanLine:
    """Hold one step: what it will do, its figures and gate at this instant, and what a rollback from it would do."""

    seq: int
    verb: str
    text: str
    gate: tuple[CheckResult, ...]
    rollback: str
    figures: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold the whole plan of one runbook on one queue; `at_ms` is Redis TIME of the figures."""

    runbook: str
    digest: str
    queue: str
    settings_digest: str
    at_ms: int
    drain_state: str
    confirm: tuple[CheckResult, ...]
    lines: tuple[PlanLine, ...]
    would_start: bool
    why_not: tuple[Obstacle, ...]
    unseen: tuple[str, ...]
    notes: tuple[str, ...]
    expired_by_drain: Mapping[str, int] | None


def plan(
    runbook: Runbook,
    telemetry: Telemetry,
    settings: Settings,
    *,
    run_id: str = NO_RUN,
    own_file: bool = True,
    heard: Heard = NOTHING_HEARD,
    evidence: Evidence = NO_EVIDENCE,
) -> Plan:
    """Plan a run of the runbook.

    `heard` is what was said of such a run where it was asked, `evidence` what a Prometheus said to the queries. Without
    a settings file of one's own (`own_file`) the settings are the drill's, and are compared with nothing.
    """
    context = Context(settings, run_id)
    drains = runbook.step(VerbName.DRAIN) is not None
    hindrances = obstacles(runbook, telemetry, context, heard)
    return Plan(
        runbook=runbook.name,
        digest=runbook.digest,
        queue=settings.queue,
        settings_digest=settings.contract.digest(),
        at_ms=telemetry.at_ms,
        drain_state=telemetry.gate.drain_state,
        confirm=runbook.confirm.checks(telemetry, context),
        lines=tuple(
            PlanLine(
                seq=step.seq,
                verb=step.verb,
                text=step_text(step, runbook, context),
                gate=step.params.checks(context, telemetry, evidence),
                rollback=rollback_text(step, runbook, context),
                figures=step.params.figures(context, telemetry),
            )
            for step in runbook.steps
        ),
        would_start=not hindrances,
        why_not=hindrances,
        unseen=heard.unseen,
        notes=_notes(runbook, telemetry, context, own_file=own_file),
        expired_by_drain=heard.asked.expires if heard.asked is not None and drains else None,
    )


def step_text(step: Step, runbook: Runbook, context: Context) -> str:
    """Give the line of a step, as the plan shows it and the run's journal records it."""
    limit = in_words(step.timeout.resolve(context))
    end = {
        OnTimeout.HOLD: "then hold and page until a named person decides",
        OnTimeout.END: "then end the run as failed, the gate as it is",
    }.get(step.on_timeout) or f"then roll back ({runbook.reason(step.verb)})"
    return f"{step.params.line(context)}; at most {limit}, {end}"


def rollback_text(step: Step, runbook: Runbook, context: Context) -> str:
    """Say what a rollback from this step would do, in its order."""
    if runbook.rollback is None:
        return "none: the run holds no lock, and when it ends the gate stays as it is"
    if step.verb not in runbook.rollback.reasons:
        return "none of its own: the gate is drain/closed and pinned already, and stays so when a named person aborts"
    after = "".join(f"; then {line}" for line in runbook.rollback.lines(context))
    return (
        f"move the gate to drain/{runbook.rollback.to} first, pinned {PinReason.ROLLED_BACK}, "
        f"reason {runbook.reason(step.verb)}, and revoke the run's fence{after}"
    )


def lines_by_place(runbook: Runbook, context: Context) -> dict[int, str]:
    """Give every line that a run's journal may hold by its place there: the steps', then those of a rollback."""
    after = runbook.rollback.lines(context) if runbook.rollback is not None else ()
    return {
        **{step.seq: step_text(step, runbook, context) for step in runbook.steps},
        **dict(enumerate(after, start=FIRST_PLACE)),
    }


def _notes(runbook: Runbook, telemetry: Telemetry, context: Context, *, own_file: bool) -> tuple[str, ...]:
    contract = context.contract
    notes = []
    unproved = [name for name in contract.classes if name not in contract.canary_classes]
    if unproved and any(step.verb == "canary" for step in runbook.steps):
        notes.append(f"Classes without a canary, which no canary proves: {', '.join(unproved)}.")
    if not own_file:
        notes.append(
            "No settings file was named, so the lines below are of the drill's settings and are compared with nothing: "
            "`--settings FILE` plans by yours."
        )
    elif telemetry.settings_digest and telemetry.settings_digest != contract.digest():
        notes.append(
            f"The queue runs under contract {telemetry.settings_digest}, these settings are {contract.digest()}: "
            f"the lines below are of these settings. `{QUEUE_APPLY}` makes them one."
        )
    return tuple(notes)
