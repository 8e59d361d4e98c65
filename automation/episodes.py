"""Turn alerts into runs: keep every notification, look at open episodes by today's figures (contract §7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import structlog

from automation.looks import Due, Looks
from automation.looping import Loop
from automation.metrics import AutomationMetrics
from automation.opening import Opening
from runbooks.alerts import Alert, Notification
from runbooks.model import Runbook
from sluicegate.errors import StoreError
from sluicegate.remedies import QUEUE_INIT
from sluicegate.run_replies import Notified
from sluicegate.settings import Settings
from sluicegate.shared_calls import SharedCalls

log = structlog.get_logger(__name__)

# A function call stays short, and so does the time until the sender has its answer: the loop looks at the rest.
_ALERTS_A_CALL = 100
_LOOKS_ON_ARRIVAL = 20
_LOOK_WITHIN_S = 2.0
# The alerts that ask for a runbook, each with it.
Asking = Sequence[tuple[Alert, Runbook]]
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


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
        self._settings = settings
        self._runbooks = runbooks
        self._looks = Looks(opening, settings, runbooks, metrics)
        # Each that comes alone would wait for the disk alone.
        self._keeping: SharedCalls[tuple[str, str, Asking], tuple[Notified, ...] | StoreError] = SharedCalls(
            lambda asked: asyncio.to_thread(self._keep_all, asked)
        )
        self._loop = Loop("episodes", settings.contract.timings.episode_look_s, self.look)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def receive(self, source: str, notification: Notification) -> Received:
        """Keep a notification, then look at its episodes with everybody else's.

        Raises NotKept or StoreError where it cannot be kept, perhaps after a part of it was; once it is, a look that
        fails, or takes long, is left to the loop.
        """
        if notification.truncated:
            log.warning("webhook_truncated", group=notification.group, left_out=notification.truncated)
        wanted = [(alert, runbook) for alert in notification.alerts if (runbook := self._asked_for(alert))]
        event, fresh = await self._keep(source, notification.group, wanted)
        due = _due(source, wanted, fresh) if fresh else []
        runs: tuple[tuple[str, str, bool], ...] = ()
        try:
            async with asyncio.timeout(_LOOK_WITHIN_S):
                looks = await self._looks.at(due)
            runs = tuple((look.run, look.answer, not fresh[one]) for one, look in looks.items())
        except (StoreError, TimeoutError) as error:
            log.warning("look_put_off", why=str(error), event_id=event)
        return Received(event, len(wanted), runs)

    async def _keep(self, source: str, group: str, wanted: Asking) -> tuple[str, dict[str, bool]]:
        """Keep the alerts; gives the event, and the open episodes with whether this notification opened them."""
        kept = await self._keeping.ask((source, group, wanted))
        if isinstance(kept, StoreError):
            raise kept
        if wanted and not all(one.event for one in kept):
            raise NotKept(f"queue {self._settings.queue} is not open: `{QUEUE_INIT}` opens it")
        episodes = (episode for one in kept for episode in one.episodes)
        return kept[0].event, {episode_id: new for episode_id, state, new in episodes if state == "open"}

    def _keep_all(self, asked: Sequence[tuple[str, str, Asking]]) -> Sequence[tuple[Notified, ...] | StoreError]:
        return self._store.notify_many((source, group, _batches(wanted)) for source, group, wanted in asked)

    async def look(self) -> None:
        """Look at every open episode by the figures of now."""
        episodes = await asyncio.to_thread(self._store.episodes)
        await self._looks.at([Due(one.episode_id, one.runbook, one.name, one.labels) for one in episodes])

    def _asked_for(self, alert: Alert) -> Runbook | None:
        """Give the runbook an alert asks for on this queue, or None."""
        for runbook in self._runbooks.values():
            trigger = runbook.trigger
            if trigger.matches(alert.labels) and alert.labels.get(trigger.queue_label) == self._settings.queue:
                return runbook
        return None


def _batches(wanted: Asking) -> Iterator[list[dict[str, object]]]:
    """Make the calls' arguments one after the other: while one is made, those before it are on their way."""
    for start in range(0, max(1, len(wanted)), _ALERTS_A_CALL):
        yield [_arguments(alert, runbook) for alert, runbook in wanted[start : start + _ALERTS_A_CALL]]


def _due(source: str, wanted: Asking, fresh: Mapping[str, bool]) -> list[Due]:
    """Give what is to be looked at on arrival, a few at most: the loop looks at the rest."""
    due: dict[str, Due] = {}
    for alert, runbook in wanted:
        episode_id = f"{source}:{alert.fingerprint}"
        if episode_id in fresh and episode_id not in due:
            due[episode_id] = Due(episode_id, runbook.name, alert.name, labels_text(alert))
            if len(due) == _LOOKS_ON_ARRIVAL:
                break
    return list(due.values())


def _arguments(alert: Alert, runbook: Runbook) -> dict[str, object]:
    return {
        "fingerprint": alert.fingerprint,
        "status": "firing" if alert.firing else "resolved",
        "starts_at": alert.starts_at_ms,
        "ends_at": alert.ends_at_ms,
        "name": alert.name,
        "runbook": runbook.name,
        "labels": labels_text(alert),
    }


def labels_text(alert: Alert) -> str:
    """Give the labels as they are kept: JSON, sorted."""
    return _SORTED.encode(alert.kept_labels())
