"""The evidence of a drill that went well, made by hand, for tests to spoil one thing in it at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drill.controls import FiringSpan
from drill.effects import Effect
from drill.load import Ask, Submission
from drill.needs import WORKERS
from drill.profile import ProfileName, profile
from drill.timeline import Look, PhaseRecord, Report, Timeline
from drill.verdict import Evidence, JobEnd
from sluicegate.admission import Decision
from sluicegate.records import AlertName
from sluicegate.replies import GateLogEntry
from sluicegate.run_replies import JournalEntry, RunHistory, RunRecord
from sluicegate.telemetry import Telemetry
from tests.readings import AT_MS, EMPTY, with_gate

CHOSEN = profile(ProfileName.FAST)
RUN = "20261129T150000-abcd"
STEPS = ("freeze", "snapshot", "drain", "fix", "recover", "canary", "burn_down", "reopen")


def sample(at_s: float, state: str = "admit", *, epoch: int = 1, **figures: Any) -> Telemetry:
    """Make one sample, `at_s` after the start."""
    gate = with_gate(EMPTY, drain_state=state, epoch=epoch).gate
    return replace(EMPTY, at_ms=AT_MS + round(at_s * 1000), gate=gate, **figures)


def move(at_s: float, before: str, after: str, reason: str, *, epoch: int, **fields: Any) -> GateLogEntry:
    """Make one entry of the gate's log."""
    known = {"actor": "controller", "pin": "", "run": "", "note": "", "figures": "{}", **fields}
    return GateLogEntry(f"{epoch}-0", AT_MS + round(at_s * 1000), before, after, reason, epoch=epoch, **known)


def entry(at_s: float, verb: str, phase: str, text: str = "") -> JournalEntry:
    """Make one line of the run's journal."""
    seq = STEPS.index(verb) + 1 if verb in STEPS else 0
    return JournalEntry(f"{at_s}-0", AT_MS + round(at_s * 1000), seq, verb, phase, "executor", text, "{}")


def history(*journal: JournalEntry, **fields: Any) -> RunHistory:
    """Make a run that was opened by a webhook at 12 s and succeeded at 30 s."""
    known: dict[str, Any] = {
        "runbook": "drain-and-recover",
        "state": "succeeded",
        "step": 8,
        "verb": "reopen",
        "fence": "9",
        "owner": "",
        "trigger": "webhook",
        "actor": "alertmanager",
        "reason": "alert SluicegateQueueAgeCritical",
        "digest": "d",
        "rollback_reason": "",
        "started_at_ms": AT_MS + 12_000,
        "ended_at_ms": AT_MS + 30_000,
        "ended_by": "executor",
        "ended_why": "ramp_end",
        **fields,
    }
    return RunHistory(RunRecord(RUN, **known), journal, {})


def journal() -> tuple[JournalEntry, ...]:
    """Make the journal of a run that went through all its steps, one every two seconds from 12 s on."""
    lines = [entry(12, "", "opened"), entry(12.1, "", "claimed")]
    for number, verb in enumerate(STEPS):
        at_s = 12.2 + 2 * number
        last = "opened" if verb == "reopen" else "done"
        lines += [entry(at_s, verb, "started"), entry(at_s + 1, verb, last)]
    return tuple(lines)


def job(number: int, state: str = "succeeded", cause: str = "") -> JobEnd:
    """Make the end of an accepted job."""
    return JobEnd(f"j{number}", f"drill:1:{number}", "lint-fix", state, cause)


def submission(number: int, at_s: float, reason: str = "") -> Submission:
    """Make a submission and its answer; a reason makes it a refusal."""
    ask = Ask("lint-fix", f"drill:1:{number}", "{}")
    return Submission(AT_MS + round(at_s * 1000), ask, Decision(not reason, f"j{number}", reason))


def effect(number: int) -> Effect:
    """Make the provider's record of a job it did."""
    return Effect(AT_MS / 1000, f"drill:1:{number}", number, "lint-fix", False)


def timeline(**fields: Any) -> Timeline:
    """Make the record of a drill whose gate closed at 8.2 s on an age of 4.1 s, and opened again at 26 s."""
    made = Timeline(200, CHOSEN.settings.contract.thresholds)
    made.samples = [
        sample(0),
        sample(8, queue_age_p95_seconds=4.1),
        sample(8.4, "reject_new", epoch=2, queue_age_p95_seconds=4.4),
        sample(10, "drain", epoch=3, queue_age_p95_seconds=6.0),
        sample(20, "recovering", epoch=4),
        sample(27, "admit", epoch=5),
        sample(36, "admit", epoch=5),
    ]
    made.phases = [PhaseRecord("healthy", "all is well", AT_MS, AT_MS + 3000, "three seconds", True, "3 s")]
    words = "action=stop_pull lease_released=3 expired=1 requeued=1 unknown=0 finished=1"
    made.reports = [Report(worker, words) for worker in WORKERS]
    made.latest = Look(made.samples[-1], (), (), (), ())
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def story(**fields: Any) -> Evidence:
    """Make the evidence of a provider degradation that the gate, the run and every job came through."""
    known: dict[str, Any] = {
        "profile": CHOSEN,
        "settings": CHOSEN.settings,
        "timeline": timeline(),
        "gate_log": (
            move(0, "drain", "admit", "init", epoch=1, actor="drill"),
            move(8.2, "admit", "reject_new", "admission_threshold", epoch=2),
            move(9.6, "reject_new", "drain", "provider_or_queue_age", epoch=3),
            move(19, "drain", "recovering", "run_recover", epoch=4, run=RUN),
            move(26, "recovering", "admit", "run_reopen", epoch=5, run=RUN, actor="executor"),
        ),
        "runs": (history(*journal()),),
        "submissions": (
            submission(1, 1),
            submission(2, 3),
            submission(3, 9, "admission_closed"),
            submission(4, 31),
            submission(5, 34.5),
        ),
        "load_errors": (),
        "jobs": (job(1), job(2, "expired", "drain"), job(4), job(5)),
        "failed_records": {"j2": "expired"},
        "effects": (effect(1), effect(4), effect(5)),
        "firing": (FiringSpan(AlertName.QUEUE_AGE_CRITICAL, AT_MS + 11_500, AT_MS + 20_000),),
        "targets": {"sluicegate": True, "sluicegate-automation": True},
        "died": (),
        "ends_closed": False,
    }
    return Evidence(**{**known, **fields})
