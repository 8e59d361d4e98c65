"""Carry out the live run, one look at a time, under its fence; any executor goes on where one stopped (contract §7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import structlog

from automation.looping import Loop
from automation.metrics import AutomationMetrics
from automation.names import process_id, request_id
from automation.place import Place
from automation.steps import STEPS
from automation.turn import Done, Ended, Failed, Fenced, Progress, Turn, Wait, commit_once
from runbooks.context import Context
from runbooks.model import OnTimeout, Runbook, RunCause, Step
from sluicegate.all_queues import AllQueues, Standing
from sluicegate.clock import Clock
from sluicegate.gate import Runbook as LockHolder
from sluicegate.replies import RunClaim, RunHistory, RunRecord
from sluicegate.run_journal import Phase
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.1
_RENEWALS_A_LEASE = 4
RECOVERY = LockHolder.DRAIN_AND_RECOVER.value
# These end themselves by their own gates, whose bounds are the same as the step's time.
_GATED = frozenset({"canary", "burn_down", "reopen"})


class Executor:
    """Own the live run's lease and advance its steps; journal and effect are one function each."""

    def __init__(
        self,
        store: Store,
        everywhere: AllQueues,
        settings: Settings,
        runbooks: Mapping[str, Runbook],
        clock: Clock,
        metrics: AutomationMetrics,
    ) -> None:
        self._store = store
        self._everywhere = everywhere
        self._place = Place(everywhere, store.queue)
        self._settings = settings
        self._clock = clock
        self._runbooks = runbooks
        self._metrics = metrics
        self.name = process_id("executor")
        self._run, self._fence = "", ""
        self._said = ""
        # A look and a renewal that claim at once would take the run from each other.
        self._claiming = asyncio.Lock()
        lease_s = settings.contract.timings.run_lease_s
        self._loops = (
            Loop("executor", _LOOK_EVERY_S, self.look),
            Loop("executor-lease", lease_s / _RENEWALS_A_LEASE, self._renew),
        )

    async def start(self) -> None:
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        for loop in self._loops:
            await loop.stop()

    async def look(self) -> None:
        """Own the live run if it is free or mine, and advance it by one look."""
        claim = await self._claim()
        if claim.run is None or not claim.owned:
            return
        history = await asyncio.to_thread(self._store.run, claim.run.run_id)
        if history is None:
            return
        telemetry = await asyncio.to_thread(self._store.observe)
        if not telemetry.gate.readable:
            self._say(history, "holds: the gate's own records cannot be read")
            return
        try:
            if history.run.state == "rolling_back":
                await self._finish_rollback(history)
            else:
                await self._advance(history, telemetry)
        except Fenced as fenced:
            log.warning("run_fenced", run=claim.run.run_id, why=str(fenced))

    async def _claim(self) -> RunClaim:
        async with self._claiming:
            claim = await asyncio.to_thread(self._store.claim_run, self.name, self._run, self._fence)
            self._metrics.executor_seen.labels(self._settings.queue).set(self._clock.now_ms() / 1000)
            if not claim.owned or claim.run is None:
                self._run = ""
                if claim.run is None:
                    await self._place.keep("")
                return claim
            await self._place.keep(claim.run.run_id)
            if claim.fence != self._fence:
                log.info("run_claimed", run=claim.run.run_id, runbook=claim.run.runbook, state=claim.run.state)
            self._run, self._fence = claim.run.run_id, claim.fence
            return claim

    async def _renew(self) -> None:
        """Keep the lease while a look takes long; what the look holds is fenced by its own fence."""
        if self._run:
            await self._claim()

    async def _advance(self, history: RunHistory, telemetry: Telemetry) -> None:
        runbook = self._runbooks.get(history.run.runbook)
        if runbook is None or (history.run.digest and history.run.digest != runbook.digest):
            here = f"has {runbook.digest}" if runbook is not None else "has none of this name"
            self._say(
                history,
                f"holds: the run is of {history.run.runbook} {history.run.digest}, this executor {here}: "
                f"start the version that opened it, or abort the run",
            )
            return
        step = _current_step(runbook, history)
        turn = self._turn(runbook, step or runbook.steps[-1], history, telemetry)
        if step is None:
            await self._end(turn)
            return
        started, held = bool(turn.entries(Phase.STARTED)), history.run.held
        if not started and not held:
            await turn.commit(Phase.STARTED, text=turn.line())
            log.info("step_started", run=turn.run_id, step=step.verb.value, text=turn.line())
            return
        # What holds over all queues lies elsewhere, so it is asked again before each step; unheard, no step is made.
        standing = await asyncio.to_thread(self._everywhere.standing)
        progress: Progress | None = _forbidden(history.run, standing) or self._obstacle(turn)
        if progress is None and held and not (started and step.verb.value in _GATED):
            self._say(history, f"held by {history.run.held_by}")
            return
        progress = progress or await STEPS[step.verb](turn)
        await self._conclude(turn, progress)

    def _turn(self, runbook: Runbook, step: Step, history: RunHistory, telemetry: Telemetry) -> Turn:
        context = Context(self._settings, history.run.run_id)
        return Turn(self._store, self.name, self._fence, history, telemetry, runbook, step, context)

    def _obstacle(self, turn: Turn) -> Failed | None:
        """Give what ends the run from any step: the kill switch, its whole time, or the step's."""
        step, run = turn.step, turn.history.run
        lasted_s = (turn.telemetry.at_ms - run.started_at_ms) / 1000
        # A person's run is bound by no kill switch that stood before; one that comes later has ended it by itself.
        if turn.telemetry.kill_switch and run.runbook == RECOVERY and run.trigger != "person":
            return Failed(RunCause.KILL_SWITCH, f"the kill switch is on: {turn.telemetry.kill_switch}")
        if run.runbook == RECOVERY and lasted_s > turn.runbook.max_runtime.resolve(turn.context):
            return Failed(RunCause.MAX_RUNTIME, f"the run has lasted {lasted_s:.0f} s")
        limit_s = step.timeout.resolve(turn.context)
        if step.verb.value not in _GATED and turn.elapsed_s > limit_s and step.on_timeout is OnTimeout.ROLLBACK:
            return Failed(step.verb, f"step {step.verb} took longer than {limit_s:g} s")
        return None

    async def _conclude(self, turn: Turn, progress: Progress) -> None:
        verb = turn.step.verb.value
        match progress:
            case Done(effect=effect, detail=detail):
                approved = detail.get("approved_by")
                extra = {"approved_by": approved} if approved else {}
                answer = await turn.commit(Phase.DONE, effect, detail=detail, arguments=extra)
                if answer.answer != "moved":
                    why = f"held by {turn.history.run.held_by}" if answer.answer == "held" else f"{effect} was refused"
                    self._say(turn.history, f"{verb}: {why}")
                    return
                self._metrics.step_seconds.labels(verb, "done").observe(turn.elapsed_s)
                log.info("step_done", run=turn.run_id, step=verb, seconds=round(turn.elapsed_s, 1), **dict(detail))
            case Failed(cause=cause, note=note):
                note += self._drift(turn)
                reason = turn.runbook.rollback.reason(cause)
                self._metrics.step_seconds.labels(verb, "rolled_back").observe(turn.elapsed_s)
                arguments = {"reason": reason.value, "note": f"{cause}: {note}"}
                await turn.commit(Phase.FAILED, "rollback", text=note, arguments=arguments)
                log.error("run_rolls_back", run=turn.run_id, step=verb, reason=reason.value, note=note)
            case Ended():
                self._metrics.step_seconds.labels(verb, "done").observe(turn.elapsed_s)
                log.info("run_succeeded", run=turn.run_id)
                self._run = ""
            case waiting:
                self._say(turn.history, f"{verb}: {waiting.why}")
                await self._page(turn, waiting)

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
        log.error("run_waits_for_people", run=turn.run_id, step=turn.step.verb.value, why=waiting.why)
        self._metrics.pages.labels("run").inc()
        await turn.commit(Phase.PAGED, text=waiting.why, detail={"waited_s": round(turn.elapsed_s, 1)})

    async def _end(self, turn: Turn) -> None:
        """End an audit whose steps are all done; a recovery ends with its ramp."""
        await turn.commit(Phase.DONE, "finish", arguments={"note": "all steps are done"})
        log.info("run_succeeded", run=turn.run_id)
        self._run = ""

    async def _finish_rollback(self, history: RunHistory) -> None:
        """Finish the hooks of a rollback whose gate move is made; the gate stays closed and pinned."""
        run = history.run
        body = {
            "executor": self.name,
            "run": run.run_id,
            "fence": self._fence,
            "request": request_id(),
            "effect": "finish",
            "seq": run.step,
            "verb": run.verb,
            "phase": Phase.DONE.value,
            "text": f"rolled back: {run.rollback_reason}",
            "detail": json.dumps({"rollback_reason": run.rollback_reason}),
            "note": f"rolled back: {run.rollback_reason}",
        }
        answer = await commit_once(self._store, body)
        if answer.answer == "moved":
            log.error("run_rolled_back", run=run.run_id, reason=run.rollback_reason)
            self._run = ""

    def _say(self, history: RunHistory, text: str) -> None:
        """Log what the run waits for, once each time it changes."""
        said = f"{history.run.run_id} {text}"
        if said != self._said:
            self._said = said
            log.info("run_waits", run=history.run.run_id, why=text)


def _forbidden(run: RunRecord, standing: Standing) -> Failed | None:
    """Give what ends a recovery from outside its queue; a person's run is bound by nothing that stood before it."""
    if run.runbook != RECOVERY:
        return None
    kill, breaker, by_person = standing.kill, standing.breaker, run.trigger == "person"
    if kill is not None and (not by_person or kill.since_ms >= run.started_at_ms):
        return Failed(RunCause.KILL_SWITCH, f"the kill switch of all queues is on: {kill.said}")
    if breaker is not None and not by_person:
        return Failed(RunCause.BREAKER, f"the breaker has tripped: {breaker.said}")
    return None


def _current_step(runbook: Runbook, history: RunHistory) -> Step | None:
    done = {entry.seq for entry in history.journal if entry.phase == Phase.DONE}
    return next((step for step in runbook.steps if step.seq not in done), None)
