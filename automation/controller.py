"""Look at the figures every tick, decide, and apply what the gate allows (contract §6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import fields

import structlog
from pydantic import TypeAdapter

from automation.looping import Loop
from automation.metrics import AutomationMetrics
from automation.names import process_id, run_id
from automation.opening import Opening
from runbooks.model import Runbook
from sluicegate.clock import Clock
from sluicegate.errors import StoreError
from sluicegate.gate_sentences import opening
from sluicegate.policy import Decision, Figures, Thresholds, decide, exit_condition_holds
from sluicegate.remedies import QUEUE_APPLY
from sluicegate.settings import Settings
from sluicegate.telemetry import Telemetry

log = structlog.get_logger(__name__)

_SWEEPS_A_TICK = 20


class Controller:
    """Be the one that tightens at once and loosens by the hysteresis; one of several acts at a time.

    It also opens the run when no webhook did: `run_open_after_s` after a drain that is not pinned (contract §7).
    """

    def __init__(
        self, opening: Opening, settings: Settings, recovery: Runbook, clock: Clock, metrics: AutomationMetrics
    ) -> None:
        self._store = opening.store
        self._opening = opening
        self._settings = settings
        self._recovery = recovery
        self._clock = clock
        self._metrics = metrics
        self._name = process_id("controller")
        self._loop = Loop("controller", settings.contract.timings.tick_s, self.tick)
        self._paged_at = -float("inf")
        self._drifted = ""
        self._seen: Telemetry | None = None

    @property
    def seen(self) -> Telemetry | None:
        """Give what was last looked at; None while another controller leads, or nothing can be read."""
        return self._seen

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def tick(self) -> None:
        """Look once and apply once; does nothing while another controller leads."""
        try:
            telemetry, fence = await self._look()
        except StoreError:
            self._seen = None
            raise
        self._seen = telemetry
        if telemetry is None:
            self._metrics.ticks.labels("followed").inc()
            return
        decision, exit_ok = judge(telemetry)
        answer = await asyncio.to_thread(
            self._store.move_gate,
            action=decision.action.value,
            reason=decision.reason.value,
            exit_ok=exit_ok,
            epoch=telemetry.gate.epoch,
            fence=fence,
            figures=_figures_seen(telemetry),
        )
        self._report(telemetry, decision, answer.answer, answer.drain_state)
        await self._sweep()
        await self._open_run_if_none_came(telemetry)
        self._page_while_pinned(telemetry)

    async def _look(self) -> tuple[Telemetry | None, str]:
        """Give the figures and the fence to apply a decision under; no figures while another controller leads."""
        leading, fence = await asyncio.to_thread(self._store.lead, self._name)
        return (await asyncio.to_thread(self._store.tick, fence) if leading else None), fence

    def _report(self, telemetry: Telemetry, decision: Decision, answer: str, drain_state: str) -> None:
        readable = telemetry.gate.readable
        self._metrics.ticks.labels("led" if readable else "unreadable").inc()
        self._metrics.last_tick.set(self._clock.now_ms() / 1000)
        self._report_drift(telemetry.settings_digest)
        if drain_state != telemetry.gate.drain_state and answer == "moved":
            log.info(
                "gate_moved",
                state=drain_state,
                was=telemetry.gate.drain_state,
                decision=decision.action.value,
                reason=decision.reason.value,
                queue_age_p95_seconds=telemetry.queue_age_p95_seconds,
                deadline_slack_p10_seconds=telemetry.deadline_slack_p10_seconds,
            )

    def _report_drift(self, stored: str) -> None:
        """Say, each time it changes, that the queue runs under another contract than this process's settings."""
        here = self._settings.contract.digest()
        drifted = stored if stored and stored != here else ""
        self._metrics.settings_drift.set(bool(drifted))
        if drifted and drifted != self._drifted:
            log.warning("settings_differ", stored=stored, here=here, unblock=_DRIFT_UNBLOCK)
        self._drifted = drifted

    async def _sweep(self) -> None:
        """Expire what is overdue and find lost leases, in batches, until nothing is left for this tick."""
        await asyncio.to_thread(self._store.promote)
        for _ in range(_SWEEPS_A_TICK):
            swept = await asyncio.to_thread(self._store.sweep)
            for event in swept.expired:
                log.info(
                    "job_expired",
                    job_id=event.job_id,
                    queue_class=event.queue_class,
                    deadline_slack_s=event.deadline_slack_s,
                    attempt=event.attempt,
                )
            for event in swept.lost:
                log.warning("lease_expired", job_id=event.job_id, queue_class=event.queue_class, state=event.state)
            if not swept.more:
                return

    async def _open_run_if_none_came(self, telemetry: Telemetry) -> None:
        gate = telemetry.gate
        waits_s = (telemetry.at_ms - gate.since_ms) / 1000
        due = waits_s >= self._settings.contract.timings.run_open_after_s
        if not gate.readable or gate.drain_state != "drain" or gate.pin or gate.run or not due:
            return
        arguments = {
            "runbook": self._recovery.name,
            "trigger": "timer",
            "run": run_id(),
            "actor": "controller",
            "reason": f"no alert asked for a run within {waits_s:.1f} s of the drain",
            "confirmed": True,
            "digest": self._recovery.digest,
            "episode": "",
        }
        answer = await asyncio.to_thread(self._opening.ask, arguments)
        log.warning("run_asked_by_timer", answer=answer.answer, run=answer.run, why=answer.why)

    def _page_while_pinned(self, telemetry: Telemetry) -> None:
        """Say again, every page_repeat_s, that a pinned closed gate waits for a named person."""
        gate = telemetry.gate
        closed_and_pinned = gate.pin is not None and gate.drain_state != "admit"
        if not closed_and_pinned:
            self._paged_at = -float("inf")
            return
        now = self._clock.monotonic()
        if now - self._paged_at < self._settings.contract.timings.page_repeat_s:
            return
        self._paged_at = now
        self._metrics.pages.labels("pinned").inc()
        # Without a contract no order is taken, so that comes first.
        unblock = UNBLOCK if gate.initialised and telemetry.settings_digest else opening(telemetry)
        log.error("gate_pinned", pin=gate.pin, note=gate.pin_note, state=gate.drain_state, unblock=unblock)


_DRIFT_UNBLOCK = (
    f"start this service with the queue's own `--settings FILE`, or put its file into force: `{QUEUE_APPLY}`"
)
UNBLOCK = "a named person: `sluicegate gate show`, then `sluicegate gate release|open --as NAME --reason WHY`"


def judge(telemetry: Telemetry) -> tuple[Decision, bool]:
    """Decide by the stored thresholds, and say whether the exit condition of reject_new holds."""
    thresholds = thresholds_of(telemetry.thresholds)
    figures = Figures.of(telemetry)
    return decide(figures, thresholds), exit_condition_holds(figures, thresholds)


_THRESHOLDS = TypeAdapter(Thresholds)


def thresholds_of(stored: Mapping[str, float]) -> Thresholds:
    """Take the thresholds that the functions use: the stored ones, so that two clients cannot decide differently.

    Names that a later version stored are left out; a missing one has its default.
    """
    known = {field.name for field in fields(Thresholds)}
    return _THRESHOLDS.validate_python({name: value for name, value in stored.items() if name in known})


def _figures_seen(telemetry: Telemetry) -> str:
    provider = telemetry.provider
    return json.dumps(
        {
            "queue_age_p95_seconds": telemetry.queue_age_p95_seconds,
            "deadline_slack_p10_seconds": telemetry.deadline_slack_p10_seconds,
            "provider_5xx_rate": provider.rate_5xx,
            "provider_timeout_rate": provider.rate_timeout,
            "provider_calls": provider.calls,
            "ready": telemetry.ready,
            "worker_inflight": telemetry.worker_inflight,
        },
        separators=(",", ":"),
    )
