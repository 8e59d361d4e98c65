"""Show a run, live or past: who asked and why, its steps, its gate's verdicts with values, its journal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from automation.page.deeds import Deed, Offer, Target
from automation.page.reading import Reading
from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.model import Runbook, Step
from runbooks.plan import step_text
from runbooks.verdict import CheckResult
from sluicegate.gate import Runbook as LockHolder
from sluicegate.run_journal import Phase, waits_of
from sluicegate.run_replies import JournalEntry, RunHistory, RunRecord
from sluicegate.settings import Settings


class Stage(StrEnum):
    """Name how far a step is."""

    DONE = "done"
    NOW = "now"
    WAITS = "waits"  # for a person
    FAILED = "failed"
    STOPPED = "stopped"  # the run ended in it
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class StepRow:
    """Show one step: its line as the plan has it, how far it is, when it began and ended (ms, 0 for not yet)."""

    seq: int
    verb: str
    text: str
    stage: Stage
    began_ms: int
    ended_ms: int

    @property
    def took_s(self) -> float | None:
        return (self.ended_ms - self.began_ms) / 1000 if self.began_ms and self.ended_ms else None


@dataclass(frozen=True, slots=True)
class RunPanel:
    """Show one run. `strange` says why its steps are known from the journal alone."""

    history: RunHistory
    steps: tuple[StepRow, ...]
    waits: str
    waits_at: str
    waits_since_ms: int
    offers: tuple[Offer, ...]
    strange: str

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """Give the journal, newest first."""
        return tuple(reversed(self.history.journal))


def run_panel(history: RunHistory, runbooks: Mapping[str, Runbook], settings: Settings) -> RunPanel:
    """Show a run; where this service has another text of its runbook, the journal's is shown."""
    run = history.run
    runbook = _runbook(history, runbooks)
    waits = waits_of(history)
    return RunPanel(
        history,
        _steps(history, runbook, settings) if runbook is not None else _journal_steps(history),
        waits.why if waits is not None else "",
        waits.step if waits is not None else "",
        waits.since_ms if waits is not None else 0,
        _offers(run) if waits is None else (),
        "" if runbook is not None else "This service has another text of the runbook: its journal says what was done.",
    )


def _offers(run: RunRecord) -> tuple[Offer, ...]:
    """Give what can be done about a run; what a waiting or a held one asks for is offered where it is asked."""
    if run.state != "running" or run.held:
        return ()
    target = Target(run=run.run_id)
    abort = Offer(Deed.ABORT, target, about=run.run_id)
    held = run.runbook == LockHolder.DRAIN_AND_RECOVER
    return (Offer(Deed.HOLD_RUN, target, about=run.run_id), abort) if held else (abort,)


@dataclass(frozen=True, slots=True)
class StepGate:
    """Hold what the gate of a run's present step comes to by the figures of now."""

    run: str
    verb: str
    checks: tuple[CheckResult, ...]


def verdicts(
    reading: Reading, runbooks: Mapping[str, Runbook], settings: Settings, evidence: Evidence = NO_EVIDENCE
) -> tuple[StepGate, ...]:
    """Judge the present step of each live run; one that has no gate is left out."""
    if not reading.telemetry.gate.readable:
        return ()
    judged = [
        StepGate(run, step.verb, step.params.checks(Context(settings, run), reading.telemetry, evidence))
        for run, step in present_steps(reading, runbooks)
    ]
    return tuple(one for one in judged if one.checks)


def present_steps(reading: Reading, runbooks: Mapping[str, Runbook]) -> Iterator[tuple[str, Step]]:
    """Give each live run's id with the step it is in, where this service has the text of its runbook."""
    for history in (reading.history, *reading.besides):
        runbook = _runbook(history, runbooks) if history is not None else None
        step = _present(history, runbook) if history is not None and runbook is not None else None
        if history is not None and step is not None:
            yield history.run.run_id, step


def _runbook(history: RunHistory, runbooks: Mapping[str, Runbook]) -> Runbook | None:
    runbook = runbooks.get(history.run.runbook)
    return runbook if runbook is not None and history.run.digest in ("", runbook.digest) else None


def _present(history: RunHistory, runbook: Runbook) -> Step | None:
    run = history.run
    if run.state != "running":
        return None
    return next((step for step in runbook.steps if step.seq == run.step), None)


def _steps(history: RunHistory, runbook: Runbook, settings: Settings) -> tuple[StepRow, ...]:
    context = Context(settings, history.run.run_id)
    return tuple(_row(history, step.seq, step.verb, step_text(step, runbook, context)) for step in runbook.steps)


def _journal_steps(history: RunHistory) -> tuple[StepRow, ...]:
    seen = {entry.seq: entry for entry in history.journal if entry.phase == Phase.STARTED}
    return tuple(_row(history, seq, entry.verb, entry.text) for seq, entry in sorted(seen.items()))


def _row(history: RunHistory, seq: int, verb: str, text: str) -> StepRow:
    run = history.run
    entries = [entry for entry in history.journal if entry.seq == seq and entry.verb == verb]
    began = next((entry for entry in entries if entry.phase == Phase.STARTED), None)
    done = next((entry for entry in entries if entry.phase == Phase.DONE), None)
    failed = next((entry for entry in entries if entry.phase == Phase.FAILED), None)
    end = done or failed
    if done is not None:
        stage = Stage.DONE
    elif failed is not None:
        stage = Stage.FAILED
    elif began is None:
        stage = Stage.AHEAD
    elif run.state != "running":
        stage = Stage.STOPPED
    else:
        waits = waits_of(history)
        stage = Stage.WAITS if waits is not None and waits.step == verb and run.step == seq else Stage.NOW
    return StepRow(
        seq,
        verb,
        began.text if began is not None and began.text else text,
        stage,
        began.at_ms if began is not None else 0,
        end.at_ms if end is not None else 0,
    )
