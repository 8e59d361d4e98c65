"""drain: expire what cannot make its deadline any more, and wait for the workers to let go of the rest."""

from __future__ import annotations

import structlog

from automation.turn import Done, Progress, Turn, Wait
from runbooks.verbs.drain import Drain
from sluicegate.damage import WRITTEN_OVER, was_measured
from sluicegate.run_journal import Phase
from sluicegate.telemetry import Part

log = structlog.get_logger(__name__)


async def drain(turn: Turn) -> Progress:
    """Expire in batches with a journal entry each; be done when no ordinary job is under a lease."""
    keep_ms = round(turn.params(Drain).keep_slack_s(turn.context) * 1000)
    while True:
        answer = await turn.commit(Phase.PROGRESS, "drain", arguments={"keep_ms": keep_ms})
        for event in answer.expired:
            log.info(
                "job_expired",
                job_id=event.job_id,
                queue_class=event.queue_class,
                deadline_slack_s=event.deadline_slack_s,
                attempt=event.attempt,
                cause="drain",
            )
        if not answer.more:
            break
    if not was_measured(turn.telemetry, Part.RUNNING):
        return Wait(f"which jobs are under a lease is not known: {WRITTEN_OVER}")
    if turn.telemetry.running:
        return Wait(f"{turn.telemetry.running} jobs are still under a lease")
    return Done(detail={"kept": turn.telemetry.unfinished})
