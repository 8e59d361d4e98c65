"""Carry out live runs, a look at a time, under their fences; any executor goes on where one stopped (contract §7)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from automation.conclusions import Conclusions
from automation.evidence import Prometheus
from automation.looping import Loop
from automation.metrics import AutomationMetrics
from automation.names import process_id
from automation.owner import Owner
from automation.pace import Pace
from automation.place import Place
from automation.steps import runners
from automation.steps.reconcile import Reconciling
from automation.turn import Failed, Fenced, Progress, Turn, Wait
from runbooks.context import Context
from runbooks.model import OnTimeout, Runbook, RunCause, Step
from sluicegate.all_queues import AllQueues, Standing
from sluicegate.clock import Clock
from sluicegate.gate import Runbook as LockHolder
from sluicegate.run_journal import Phase
from sluicegate.run_replies import RunHistory, RunRecord
from sluicegate.settings import Settings
from sluicegate.store import Store

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.1
_RENEWALS_A_LEASE = 4
RECOVERY = LockHolder.DRAIN_AND_RECOVER.value
# These end themselves by their own gates, whose bounds are the same as the step's time.
_GATED = frozenset({"canary", "burn_down", "reopen"})
# These go on being measured while a person holds the run.
_MEASURED = _GATED | {"wait_for", "approve"}


class Executor:
    """Own the live runs' leases and advance their steps; journal and effect are one function each.

    The run that holds the queue's lock has a loop of its own, so that none of those beside it can hold it up.
    """

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
        self._conclusions = Conclusions(store, metrics)
        self._runner = runners(Reconciling(store, settings.reconcile))
        self._pace = Pace()
        self._prometheus = Prometheus(settings.automation.prometheus_url)
        self.name = process_id("executor")
        self._lock = Owner(store, self.name)
        self._besides: dict[str, Owner] = {}
        self._live_besides: tuple[str, ...] = ()
        lease_s = settings.contract.timings.run_lease_s
        self._loops = (
            Loop("executor", _LOOK_EVERY_S, self.look),
            Loop("executor-beside", _LOOK_EVERY_S, self.look_beside),
            Loop("executor-lease", lease_s / _RENEWALS_A_LEASE, self._renew),
        )

    async def start(self) -> None:
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        for loop in self._loops:
            await loop.stop()

    async def look(self) -> None:
        """Own the run that holds the lock if it is free or mine, and advance it by one look."""
        await self._look(self._lock)

    async def look_beside(self) -> None:
        """Do the same for each run beside it that was seen with the last look."""
        for name in self._live_besides:
            owner = self._besides.setdefault(name, Owner(self._store, self.name, name))
            await self._look(owner)

    async def _look(self, owner: Owner) -> None:
        claim = await owner.claim()
        if owner is self._lock and (claim.owned or claim.run is None):
            await self._place.keep(claim.run.run_id if claim.run is not None else "")
        self._live_besides = claim.besides
        self._metrics.executor_seen.labels(self._settings.queue).set(self._clock.now_ms() / 1000)
        if claim.run is None or not claim.owned:
            return
        history = await asyncio.to_thread(self._store.run, claim.run.run_id)
        if history is None:
            return
        try:
            await self._carry_on(owner, history)
        except Fenced as fenced:
            log.warning("run_fenced", run=claim.run.run_id, why=str(fenced))

    async def _renew(self) -> None:
        for owner in (self._lock, *self._besides.values()):
            await owner.renew()

    async def _carry_on(self, owner: Owner, history: RunHistory) -> None:
        runbook = self._runbooks.get(history.run.runbook)
        known = runbook is not None and history.run.digest in ("", runbook.digest)
        rolls_back = history.run.state == "rolling_back"
        if runbook is None or (not known and not rolls_back):
            here = f"has {runbook.digest}" if runbook is not None else "has none of this name"
            self._conclusions.say(
                history,
                f"holds: the run is of {history.run.runbook} {history.run.digest}, this executor {here}: "
                f"start the version that opened it, or abort the run",
            )
            return
        step = _current_step(runbook, history)
        turn = await self._turn(owner, runbook, step or runbook.steps[-1], history)
        if not turn.telemetry.gate.readable:
            self._conclusions.say(history, "holds: the gate's own records cannot be read")
            return
        if rolls_back:
            ended = await self._conclusions.finish_rollback(turn, known=known)
        elif step is None:
            ended = await self._conclusions.finish(turn)
        else:
            ended = await self._advance(turn)
        if ended:
            owner.let_go()

    async def _turn(self, owner: Owner, runbook: Runbook, step: Step, history: RunHistory) -> Turn:
        """Look at what the step's gate needs; the queue's own figures last, so that they are of now."""
        context = Context(self._settings, history.run.run_id)
        queries = step.params.queries(context)
        evidence = await self._prometheus.samples(queries) if queries else {}
        telemetry = await asyncio.to_thread(self._store.observe)
        return Turn(
            self._store, self.name, owner.fence, history, telemetry, runbook, step, context, evidence, self._pace
        )

    async def _advance(self, turn: Turn) -> bool:
        """Begin the step, or bring it one look further; gives whether the run has ended."""
        started, run = bool(turn.entries(Phase.STARTED)), turn.history.run
        if not started and not run.held:
            await turn.commit(Phase.STARTED, text=turn.line())
            log.info("step_started", run=turn.run_id, step=turn.step.verb, text=turn.line())
            return False
        # What holds over all queues lies elsewhere, so it is asked again before each step; unheard, no step is made.
        standing = await asyncio.to_thread(self._everywhere.standing)
        progress: Progress | None = _forbidden(run, standing) or self._obstacle(turn)
        if progress is None and run.held and not (started and turn.step.verb in _MEASURED):
            self._conclusions.say(turn.history, f"held by {run.held_by}")
            return False
        progress = progress or await self._runner(turn.step.verb)(turn)
        return await self._conclusions.conclude(turn, _held_past_its_time(turn, progress))

    def _obstacle(self, turn: Turn) -> Failed | None:
        """Give what ends the run from any step: the kill switch, its whole time, or the step's."""
        step, run = turn.step, turn.history.run
        lasted_s = (turn.telemetry.at_ms - run.started_at_ms) / 1000
        # A person's run is bound by no kill switch that stood before; one that comes later has ended it by itself.
        if turn.telemetry.kill_switch and run.runbook == RECOVERY and run.trigger != "person":
            return Failed(RunCause.KILL_SWITCH, f"the kill switch is on: {turn.telemetry.kill_switch}")
        bounded = run.runbook == RECOVERY or turn.runbook.beside
        if bounded and lasted_s > turn.runbook.max_runtime.resolve(turn.context):
            return Failed(RunCause.MAX_RUNTIME, f"the run has lasted {lasted_s:.0f} s")
        if step.verb not in _GATED and _overdue(turn) and step.on_timeout is not OnTimeout.HOLD:
            limit_s = step.timeout.resolve(turn.context)
            return Failed(step.verb, f"step {step.verb} took longer than {limit_s:g} s")
        return None


def _overdue(turn: Turn) -> bool:
    return turn.elapsed_s > turn.step.timeout.resolve(turn.context)


def _held_past_its_time(turn: Turn, progress: Progress) -> Progress:
    """Turn a wait that took longer than the step may into a hold: only a person can end it, and is told so."""
    holds = turn.step.on_timeout is OnTimeout.HOLD and _overdue(turn)
    if not (isinstance(progress, Wait) and holds) or progress.needs_person:
        return progress
    every_s = progress.page_every_s or turn.context.contract.timings.fix_page_s
    limit_s = turn.step.timeout.resolve(turn.context)
    return Wait(f"holds: step {turn.step.verb} took longer than {limit_s:g} s", every_s, needs_person=True)


def _forbidden(run: RunRecord, standing: Standing) -> Failed | None:
    """Give what ends a run from outside its queue; a person's run is bound by nothing older, an audit by nothing."""
    if run.runbook == LockHolder.ROLLBACK_AND_AUDIT:
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
