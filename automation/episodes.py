"""Turn alerts into runs: keep every notification, look at open episodes by today's figures (contract §7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from automation.looping import Loop
from automation.metrics import AutomationMetrics
from automation.names import run_id
from automation.opening import Opening
from runbooks.alerts import Alert, Notification
from runbooks.context import Context
from runbooks.model import Runbook
from runbooks.verdict import Verdict
from sluicegate.errors import StoreError
from sluicegate.remedies import QUEUE_INIT
from sluicegate.replies import Episode
from sluicegate.settings import Settings
from sluicegate.telemetry import Telemetry

log = structlog.get_logger(__name__)

# A function call stays short, and so does the time until the sender has its answer: the loop looks at the rest.
_ALERTS_A_CALL = 100
_LOOKS_ON_ARRIVAL = 20


@dataclass(frozen=True, slots=True)
class Received:
    """Say what a notification came to: its event, how many alerts asked for a runbook, and their runs."""

    event: str
    matched: int
    runs: tuple[tuple[str, str, bool], ...]


class NotKept(Exception):
    """Say why a notification was not kept though the server answered."""


class Episodes:
    """Keep alerts and ask for runs; the webhook is a hint, the figures decide."""

    def __init__(
        self, opening: Opening, settings: Settings, runbooks: Mapping[str, Runbook], metrics: AutomationMetrics
    ) -> None:
        self._store = opening.store
        self._opening = opening
        self._settings = settings
        self._runbooks = runbooks
        self._metrics = metrics
        self._loop = Loop("episodes", settings.contract.timings.episode_look_s, self.look)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def receive(self, source: str, notification: Notification) -> Received:
        """Keep a notification, then look at its episodes at once.

        Raises NotKept or StoreError where it cannot be kept; once it is, a look that fails is left to the loop.
        """
        if notification.truncated:
            log.warning("webhook_truncated", group=notification.group, left_out=notification.truncated)
        wanted = [(alert, runbook) for alert in notification.alerts if (runbook := self._asked_for(alert))]
        event, fresh = await self._keep(source, notification.group, [_arguments(alert, book) for alert, book in wanted])
        try:
            runs = await self._look_on_arrival(fresh) if fresh else ()
        except StoreError as error:
            log.warning("look_put_off", why=str(error), event_id=event)
            runs = ()
        return Received(event, len(wanted), runs)

    async def _keep(self, source: str, group: str, alerts: list[dict[str, object]]) -> tuple[str, dict[str, bool]]:
        """Keep the alerts; gives the event, and the open episodes with whether this notification opened them."""
        event, fresh = "", {}
        for start in range(0, max(1, len(alerts)), _ALERTS_A_CALL):
            batch = alerts[start : start + _ALERTS_A_CALL]
            kept = await asyncio.to_thread(self._store.notify, source, group, batch)
            if alerts and not kept.event:
                raise NotKept(f"queue {self._settings.queue} is not open: `{QUEUE_INIT}` opens it")
            event = event or kept.event
            fresh.update({episode_id: new for episode_id, state, new in kept.episodes if state == "open"})
        return event, fresh

    async def _look_on_arrival(self, fresh: Mapping[str, bool]) -> tuple[tuple[str, str, bool], ...]:
        runs: list[tuple[str, str, bool]] = []
        for episode in await asyncio.to_thread(self._store.episodes):
            if episode.episode_id in fresh and len(runs) < _LOOKS_ON_ARRIVAL:
                outcome, run = await self._look_at(episode)
                runs.append((run, outcome, not fresh[episode.episode_id]))
        return tuple(runs)

    async def look(self) -> None:
        """Look at every open episode by the figures of now."""
        for episode in await asyncio.to_thread(self._store.episodes):
            await self._look_at(episode)

    def _asked_for(self, alert: Alert) -> Runbook | None:
        """Give the runbook an alert asks for on this queue, or None."""
        for runbook in self._runbooks.values():
            trigger = runbook.trigger
            if trigger.matches(alert.labels) and alert.labels.get(trigger.queue_label) == self._settings.queue:
                return runbook
        return None

    async def _look_at(self, episode: Episode) -> tuple[str, str]:
        runbook = self._runbooks.get(episode.runbook)
        if runbook is None:
            return "unknown_runbook", ""
        telemetry = await asyncio.to_thread(self._store.observe)
        arguments = {
            "runbook": runbook.name,
            "trigger": "webhook",
            "run": run_id(),
            "actor": episode.source,
            "reason": f"alert {episode.name}",
            "note": episode.labels,
            "confirmed": self._confirmed(runbook, telemetry),
            "digest": runbook.digest,
            "episode": episode.episode_id,
        }
        answer = await asyncio.to_thread(self._opening.ask, arguments)
        self._metrics.episode_looks.labels(answer.answer).inc()
        outcome = f"{answer.answer}: {answer.why}" if answer.why else answer.answer
        if await asyncio.to_thread(self._store.episode_looked, episode.episode_id, outcome, answer.run):
            log.info("episode_looked", episode=episode.episode_id, alert=episode.name, outcome=outcome, run=answer.run)
        return answer.answer, answer.run

    def _confirmed(self, runbook: Runbook, telemetry: Telemetry) -> bool:
        return runbook.confirm.verdict(telemetry, Context(self._settings)) is Verdict.PASS


def _arguments(alert: Alert, runbook: Runbook) -> dict[str, object]:
    return {
        "fingerprint": alert.fingerprint,
        "status": "firing" if alert.firing else "resolved",
        "starts_at": alert.starts_at_ms,
        "ends_at": alert.ends_at_ms,
        "name": alert.name,
        "runbook": runbook.name,
        "labels": json.dumps(alert.kept_labels(), sort_keys=True, separators=(",", ":")),
    }
