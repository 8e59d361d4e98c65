"""Ask for the runs that open episodes want, by the figures of now (contract §7): one round at a time for all who ask.

The runs of a runbook on a queue are one, so a round asks once a runbook, however many alerts want it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from automation.metrics import AutomationMetrics
from automation.names import run_id
from automation.opening import Opening
from runbooks.context import Context
from runbooks.model import Runbook
from runbooks.verdict import Verdict
from sluicegate.replies import GateAnswer
from sluicegate.settings import Settings
from sluicegate.telemetry import Telemetry

log = structlog.get_logger(__name__)

# A function call stays short.
_LOOKS_A_CALL = 100


@dataclass(frozen=True, slots=True)
class Due:
    """Name an open episode that is to be looked at: its runbook, its alert, and the labels as they are kept."""

    episode_id: str
    runbook: str
    alert: str
    labels: str

    @property
    def source(self) -> str:
        return self.episode_id.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Look:
    """Say what a look came to: the answer, why, and the run it is about."""

    answer: str
    run: str = ""
    why: str = ""

    def again(self) -> Look:
        """Give what whoever asks for the same again comes to: the run that was just opened is there."""
        return Look("attached", self.run) if self.answer == "moved" else self

    @property
    def outcome(self) -> str:
        return f"{self.answer}: {self.why}" if self.why else self.answer


class Looks:
    """Look at episodes in rounds; whoever comes while a round goes on is looked at in the next, together."""

    def __init__(
        self, opening: Opening, settings: Settings, runbooks: Mapping[str, Runbook], metrics: AutomationMetrics
    ) -> None:
        self._opening = opening
        self._settings = settings
        self._runbooks = runbooks
        self._metrics = metrics
        self._due: dict[str, Due] = {}
        self._next: asyncio.Task[dict[str, Look]] | None = None
        self._round = asyncio.Lock()

    async def at(self, due: Sequence[Due]) -> Mapping[str, Look]:
        """Look at these, and perhaps others', in the next round; raises StoreError where that fails.

        Of several who ask for one episode in a round, one hears that its run was opened.
        """
        if not due:
            return {}
        if self._next is None:
            self._due = {}
            self._next = asyncio.create_task(self._when_free(self._due), name="looks")
            # Nobody may be left to hear of its failure.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        here = {one.episode_id for one in due}
        others = here & self._due.keys()
        self._due |= {one.episode_id: one for one in due}
        # One who gives up takes nobody else's look away.
        looks = await asyncio.shield(self._next)
        return {one: looks[one].again() if one in others else looks[one] for one in here}

    async def _when_free(self, due: dict[str, Due]) -> dict[str, Look]:
        async with self._round:
            self._next = None
            return await asyncio.to_thread(self._look, tuple(due.values()))

    def _look(self, due: Sequence[Due]) -> dict[str, Look]:
        telemetry = self._opening.store.observe()
        asked: dict[str, Look] = {}
        looks = {one.episode_id: self._look_at(one, telemetry, asked) for one in due}
        changed: set[str] = set()
        for start in range(0, len(due), _LOOKS_A_CALL):
            part = due[start : start + _LOOKS_A_CALL]
            rows = [(one.episode_id, looks[one.episode_id].outcome, looks[one.episode_id].run) for one in part]
            changed |= self._opening.store.episodes_looked(rows)
        for one in due:
            look = looks[one.episode_id]
            self._metrics.episode_looks.labels(look.answer).inc()
            if one.episode_id in changed:
                said = {"alert": one.alert, "outcome": look.outcome, "run": look.run}
                log.info("episode_looked", episode=one.episode_id, **said)
        return looks

    def _look_at(self, due: Due, telemetry: Telemetry, asked: dict[str, Look]) -> Look:
        runbook = self._runbooks.get(due.runbook)
        if runbook is None:
            return Look("unknown_runbook")
        if runbook.name not in asked:
            answer = self._ask(due, runbook, telemetry)
            asked[runbook.name] = Look(answer.answer, answer.run, answer.why)
            return asked[runbook.name]
        return asked[runbook.name].again()

    def _ask(self, due: Due, runbook: Runbook, telemetry: Telemetry) -> GateAnswer:
        return self._opening.ask(
            {
                "runbook": runbook.name,
                "trigger": "webhook",
                "run": run_id(),
                "actor": due.source,
                "reason": f"alert {due.alert}",
                "note": due.labels,
                "confirmed": runbook.confirm.verdict(telemetry, Context(self._settings)) is Verdict.PASS,
                "digest": runbook.digest,
                "episode": due.episode_id,
            }
        )
