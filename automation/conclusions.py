"""Write down what a look at a step came to: it is done, it fails, it ends the run, or it waits and people are told."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from automation import rolling_back
from automation.metrics import AutomationMetrics
from automation.turn import Done, Ended, Failed, Progress, Turn, Wait
from runbooks.model import RunCause
from sluicegate.gate import Runbook as LockHolder
from sluicegate.run_journal import Phase
from sluicegate.run_replies import RunHistory
from sluicegate.store import Store

log = structlog.get_logger(__name__)

_FIGURES_EVERY_S = 5.0
# Whoever is ended by these has not failed.
_FORBIDDEN = frozenset({RunCause.KILL_SWITCH, RunCause.BREAKER})


class Conclusions:
    """Commit what steps say; every method that may end the run says whether it did."""

    def __init__(
        self, store: Store, metrics: AutomationMetrics, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._monotonic = monotonic
        self._said: dict[str, tuple[tuple[str, str, str], float]] = {}

    async def conclude(self, turn: Turn, progress: Progress) -> bool:
        """Commit what one look at the step came to."""
        match progress:
            case Done():
                await self._done(turn, progress)
                return False
            case Failed(cause=cause, note=note):
                return await self._failed(turn, cause, note)
            case Ended():
                self._timed(turn, "done")
                log.info("run_succeeded", run=turn.run_id)
                return True
            case waiting:
                self.say(turn.history, f"{turn.step.verb}: {waiting.why}")
                await self._page(turn, waiting)
                return False

    async def finish(self, turn: Turn) -> bool:
        """End a run whose steps are all done; a recovery ends with its ramp."""
        await turn.commit(Phase.DONE, "finish", arguments={"note": "all steps are done"})
        log.info("run_succeeded", run=turn.run_id)
        return True

    async def finish_rollback(self, turn: Turn, *, known: bool) -> bool:
        """Finish the hooks of a rollback whose gate move is made, then end the run; the gate stays closed and pinned.

        A hook that was not carried out is told to people, and the run reads as degraded.
        """
        failed = await rolling_back.look(turn, known=known)
        if failed is None:
            return False
        run = turn.history.run
        text = f"rolled back: {run.rollback_reason}" + (f"; not carried out: {failed}" if failed else "")
        detail = {"rollback_reason": run.rollback_reason}
        answer = await rolling_back.last_turn(turn).commit(
            Phase.DONE, "finish", text=text, detail=detail, arguments={"note": text, "degraded": bool(failed)}
        )
        if answer.answer != "moved":
            return False
        log.error("run_rolled_back", run=run.run_id, reason=run.rollback_reason, degraded=failed)
        if failed:
            self._metrics.pages.labels("run").inc()
        return True

    def say(self, history: RunHistory, text: str) -> None:
        """Log what a run waits for each time it changes; a figure in it, that changes with every look, at a pace."""
        run, now = history.run, self._monotonic()
        said = (run.run_id, text.partition(":")[0], text)
        before, at = self._said.get(run.runbook, (None, 0.0))
        if said == before or (before is not None and said[:2] == before[:2] and now - at < _FIGURES_EVERY_S):
            return
        self._said[run.runbook] = (said, now)
        log.info("run_waits", run=run.run_id, why=text)

    async def _done(self, turn: Turn, done: Done) -> None:
        verb, approved = turn.step.verb, done.detail.get("approved_by")
        arguments = {**done.arguments, **({"approved_by": approved} if approved else {})}
        answer = await turn.commit(Phase.DONE, done.effect, text=done.text, detail=done.detail, arguments=arguments)
        if answer.answer == "unchanged":
            # It stood already: there is nothing to do but to say so.
            answer = await turn.commit(Phase.DONE, detail={**done.detail, "unchanged": True})
        if answer.answer != "moved":
            why = f"held by {turn.history.run.held_by}" if answer.answer == "held" else f"{done.effect} was refused"
            self.say(turn.history, f"{verb}: {why}")
            return
        self._timed(turn, "done")
        log.info("step_done", run=turn.run_id, step=verb, seconds=round(turn.elapsed_s, 1), **dict(done.detail))

    async def _failed(self, turn: Turn, cause: str, note: str) -> bool:
        verb = turn.step.verb
        note += self._drift(turn)
        if turn.runbook.beside:
            self._timed(turn, "failed")
            said, result = f"{cause}: {note}", "aborted" if cause in _FORBIDDEN else "failed"
            await turn.commit(Phase.FAILED, "finish", text=note, arguments={"result": result, "note": said})
            log.error(f"run_{result}", run=turn.run_id, step=verb, note=said)
            return True
        if turn.runbook.name == LockHolder.ROLLBACK_AND_AUDIT:
            # Its gate is closed and pinned: there is nothing to roll back, and a person decides.
            await self._page(turn, Wait(f"holds: {note}", turn.context.contract.timings.fix_page_s, needs_person=True))
            return False
        reason = turn.runbook.reason(cause)
        self._timed(turn, "rolled_back")
        arguments = {"reason": reason.value, "note": f"{cause}: {note}"}
        await turn.commit(Phase.FAILED, "rollback", text=note, arguments=arguments)
        log.error("run_rolls_back", run=turn.run_id, step=verb, reason=reason.value, note=note)
        return False

    def _timed(self, turn: Turn, result: str) -> None:
        self._metrics.step_seconds.labels(turn.step.verb, result).observe(turn.elapsed_s)

    def _drift(self, turn: Turn) -> str:
        """Say in a rollback's note that steps went by another contract than the functions: it may be the cause."""
        stored, here = turn.telemetry.settings_digest, turn.context.contract.digest()
        if not stored or stored == here:
            return ""
        return f"; in force is contract {stored}, this service was started with {here}: restart it with the applied one"

    async def _page(self, turn: Turn, waiting: Wait) -> None:
        """Tell people that the step waits; the journal keeps when, so that a resumed run goes on with the same rhythm.

        It is said before it is written: after a crash in between it is said twice, never lost.
        """
        if waiting.page_every_s is None:
            return
        paged = turn.entries(Phase.PAGED)
        last_s = (paged[-1].at_ms - turn.entries(Phase.STARTED)[0].at_ms) / 1000 if paged else 0.0
        at_once = waiting.needs_person and (not paged or paged[-1].text != waiting.why)
        if not at_once and turn.elapsed_s - last_s < waiting.page_every_s:
            return
        log.error("run_waits_for_people", run=turn.run_id, step=turn.step.verb, why=waiting.why)
        self._metrics.pages.labels("run").inc()
        await turn.commit(Phase.PAGED, text=waiting.why, detail={"waited_s": round(turn.elapsed_s, 1)})
