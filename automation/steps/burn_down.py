"""burn_down: workers pull the kept backlog, admission closed, and it must shrink in every window."""

from __future__ import annotations

import json

from automation.turn import Done, Failed, Progress, Turn, Wait
from runbooks.gates import Measurement, burn_down_gate, overall
from runbooks.verbs.step import VerbName
from runbooks.verdict import Verdict
from sluicegate.damage import AGES, DEADLINES, WRITTEN_OVER, was_measured
from sluicegate.run_journal import Phase
from sluicegate.telemetry import Part

# A few looks in every window are enough to judge it, and all of them are in the journal.
_LOOKS_A_WINDOW = 6


async def burn_down(turn: Turn) -> Progress:
    """Measure, judge every whole window since green, and go on once the age is one the gate accepts (contract §7.6)."""
    if not was_measured(turn.telemetry, Part.READY, *AGES, *DEADLINES):
        return Wait(f"age and backlog are not known: {WRITTEN_OVER}")
    now = Measurement.of(turn.telemetry)
    measured = [_measurement(entry.detail) for entry in turn.entries(Phase.PROGRESS)]
    checks = burn_down_gate([*measured, now], turn.context.contract)
    verdict = overall(checks)
    if verdict is Verdict.FAIL:
        failed = [f"{check.name}: {check.why or check.value}" for check in checks if check.verdict is Verdict.FAIL]
        return Failed(VerbName.BURN_DOWN, "; ".join(failed))
    if verdict is Verdict.PASS:
        return Done("burned_down", {"queue_age_p95_seconds": now.queue_age_p95_seconds, "backlog": now.backlog})
    look_ms = turn.context.contract.timings.burn_down_window_s * 1000 / _LOOKS_A_WINDOW
    if not measured or now.at_ms - measured[-1].at_ms >= look_ms:
        await turn.commit(
            Phase.PROGRESS,
            text=f"age p95 {now.queue_age_p95_seconds:.1f} s, {now.backlog} jobs left",
            detail={"at_ms": now.at_ms, "age_s": now.queue_age_p95_seconds, "backlog": now.backlog},
        )
    return Wait(f"{now.backlog} jobs left, age p95 {now.queue_age_p95_seconds:.1f} s")


def _measurement(detail: str) -> Measurement:
    body = json.loads(detail)
    return Measurement(body["at_ms"], body["age_s"], body["backlog"])
