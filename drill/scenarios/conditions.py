"""The conditions that phases wait for. Each reads figures, gate log, journal and answers; none has an effect."""

from __future__ import annotations

from collections import Counter

from drill.load import Submission
from drill.needs import WORKERS
from drill.scenarios.scenario import Condition, View
from sluicegate.run_replies import RunHistory
from sluicegate.telemetry import Telemetry

# A living worker says so several times a second.
_SILENT_MS = 2000


def healthy_for(full_s: float) -> Condition:
    """Wait until jobs were accepted for so long, with the gate open."""

    def holds(view: View) -> bool:
        accepted = any(one.decision.accepted for one in view.submitted_since)
        return view.phase_s >= full_s and accepted and view.look.telemetry.gate.drain_state == "admit"

    return Condition(f"the gate is open and jobs are accepted for {full_s:g} s of the full profile", holds, _gate_seen)


def gate_reaches(state: str, reason: str) -> Condition:
    """Wait until the gate's log tells of a move to this state for this reason."""

    def holds(view: View) -> bool:
        return any(entry.to_state == state and entry.reason == reason for entry in view.look.gate_log)

    return Condition(f"the gate moves to {state} ({reason})", holds, _gate_seen)


def run_opened() -> Condition:
    """Wait until a lock-holding run exists."""
    return Condition("a run is opened", lambda view: view.look.run is not None, _run_seen)


def step_reached(verb: str, phase: str) -> Condition:
    """Wait until the newest run's journal holds an entry of this step and phase."""

    def holds(view: View) -> bool:
        run = view.look.run
        return run is not None and any(entry.verb == verb and entry.phase == phase for entry in run.journal)

    return Condition(f"the run's step {verb} is {phase}", holds, _run_seen)


def turned_green() -> Condition:
    """Wait until the canaries of the live run are green."""
    return Condition(
        "the canaries are green",
        lambda view: any(entry.reason == "canaries_green" for entry in view.look.gate_log),
        _run_seen,
    )


def run_ends(state: str) -> Condition:
    """Wait until the newest run has ended in this state."""

    def holds(view: View) -> bool:
        return view.look.run is not None and view.look.run.run.state == state

    return Condition(f"the run ends {state}", holds, _run_seen)


def refused(reason: str) -> Condition:
    """Wait until a job submitted in this phase is refused for this reason."""

    def holds(view: View) -> bool:
        return any(not one.decision.accepted and one.decision.reason == reason for one in view.submitted_since)

    return Condition(f"a job is refused with {reason}", holds, _answers_seen)


def refused_for(reason: str, full_s: float) -> Condition:
    """Wait until the last so many seconds, all in this phase, brought nothing but refusals for this reason."""

    def holds(view: View) -> bool:
        recent = _recent(view, full_s)
        return bool(recent) and all(one.decision.reason == reason for one in recent)

    return Condition(f"every job is refused with {reason} for {full_s:g} s of the full profile", holds, _answers_seen)


def accepted_for(full_s: float) -> Condition:
    """Wait until the last so many seconds of the full profile, all in this phase, brought accepted jobs only."""

    def holds(view: View) -> bool:
        recent = _recent(view, full_s)
        return bool(recent) and all(one.decision.accepted for one in recent)

    return Condition(f"every job is accepted for {full_s:g} s of the full profile", holds, _answers_seen)


def _recent(view: View, full_s: float) -> tuple[Submission, ...]:
    """Give the submissions of the last so many seconds of the full profile; none while the phase is younger."""
    if view.phase_s < full_s:
        return ()
    since_ms = view.look.at_ms - (view.look.at_ms - view.phase_from_ms) * full_s / view.phase_s
    return tuple(one for one in view.submitted_since if one.at_ms >= since_ms)


def lost_jobs_found() -> Condition:
    """Wait until jobs are unknown, and no worker that fell silent holds one any more."""

    def holds(view: View) -> bool:
        silent = [worker for worker in view.look.workers if worker.seen_ms_ago > _SILENT_MS]
        return view.look.telemetry.unknown > 0 and not any(worker.inflight for worker in silent)

    return Condition("the jobs that the dead worker held are unknown", holds, _jobs_seen)


def ready(workers: int = len(WORKERS)) -> Condition:
    """Wait until so many workers were seen and the controller has looked, so that whatever comes is admitted."""

    def holds(view: View) -> bool:
        gate = view.look.telemetry.gate
        return len(view.look.workers) >= workers and gate.controller_seen_ms > view.phase_from_ms

    return Condition(f"{workers} workers and the controller are there", holds, _workers_seen)


def answered(count: int, reason: str = "") -> Condition:
    """Wait until so many submissions of this phase were refused for this reason, or without one accepted."""

    def holds(view: View) -> bool:
        return sum(one.decision.reason == reason for one in view.submitted_since) == count

    said = f"refused with {reason}" if reason else "accepted"
    return Condition(f"{count} jobs are {said}", holds, _answers_seen)


def refusals_due() -> Condition:
    """Wait until every refusal that a key got last has come due."""

    def holds(view: View) -> bool:
        last = {one.ask.key: one for one in view.submissions}
        waits = [one for one in last.values() if not one.decision.accepted]
        return all(view.look.at_ms > one.at_ms + 1000 * (one.decision.retry_after_s or 0) for one in waits)

    return Condition("every refusal has come due", holds, _answers_seen)


def pending(count: int) -> Condition:
    """Wait until so many jobs are ready and none runs."""

    def holds(view: View) -> bool:
        return (view.look.telemetry.ready, view.look.telemetry.running) == (count, 0)

    return Condition(f"{count} jobs are pending", holds, _jobs_seen)


def lasts(full_s: float) -> Condition:
    """Wait for so many seconds of the full profile."""
    return Condition(f"{full_s:g} s of the full profile pass", lambda view: view.phase_s >= full_s, _jobs_seen)


def none_unknown() -> Condition:
    """Wait until no job is unknown."""
    return Condition("no job is unknown", lambda view: view.look.telemetry.unknown == 0, _jobs_seen)


def all_done() -> Condition:
    """Wait until no job is unfinished."""
    return Condition("no job is unfinished", lambda view: view.look.telemetry.unfinished == 0, _jobs_seen)


def back_for(worker: str, full_s: float) -> Condition:
    """Wait until a worker has been back among the living for so many seconds of the full profile."""

    def holds(view: View) -> bool:
        living = {one.worker_id for one in view.look.workers if one.seen_ms_ago <= _SILENT_MS}
        return view.phase_s >= full_s and worker in living

    return Condition(f"{worker} is back for {full_s:g} s of the full profile", holds, _workers_seen)


def _gate_seen(view: View) -> str:
    gate = view.look.telemetry.gate
    return f"state={gate.drain_state} reason={gate.reason} {_figures(view.look.telemetry)}"


def _figures(telemetry: Telemetry) -> str:
    provider = telemetry.provider
    return (
        f"queue_age_p95_seconds={telemetry.queue_age_p95_seconds:.1f} calls={provider.calls} "
        f"status_5xx={provider.status_5xx} timeouts={provider.timeouts}"
    )


def _run_seen(view: View) -> str:
    return f"{_history(view.look.run)}; {_gate_seen(view)}"


def _history(run: RunHistory | None) -> str:
    if run is None:
        return "no run"
    last = run.journal[-1] if run.journal else None
    entry = f", last entry {last.verb} {last.phase} {last.text}".rstrip() if last else ""
    return f"run {run.run.run_id} is {run.run.state}{entry}"


def _answers_seen(view: View) -> str:
    answers = Counter("accepted" if one.decision.accepted else one.decision.reason for one in view.submitted_since)
    return ", ".join(f"{count} {answer}" for answer, count in answers.most_common()) or "no answer yet"


def _jobs_seen(view: View) -> str:
    telemetry = view.look.telemetry
    return (
        f"{telemetry.ready + telemetry.delayed} pending, {telemetry.running} running, {telemetry.unknown} unknown, "
        f"{telemetry.blocked} blocked"
    )


def _workers_seen(view: View) -> str:
    seen = ", ".join(f"{one.worker_id} {one.seen_ms_ago} ms ago" for one in view.look.workers)
    return f"{seen or 'no worker'}; {_gate_seen(view)}"
