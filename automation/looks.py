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
from sluicegate.shared_calls import SharedCalls
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
    """Look at episodes in rounds."""

    def __init__(
        self, opening: Opening, settings: Settings, runbooks: Mapping[str, Runbook], metrics: AutomationMetrics
    ) -> None:
        self._opening = opening
        self._settings = settings
        self._runbooks = runbooks
        self._metrics = metrics
        self._shared: SharedCalls[Sequence[Due], Mapping[str, Look]] = SharedCalls(
            lambda asked: asyncio.to_thread(self._look_for_all, asked), in_flight=1
        )

    async def at(self, due: Sequence[Due]) -> Mapping[str, Look]:
        """Look at these, and perhaps others', in the next round; raises StoreError where that fails.

        Of several who ask for one episode in a round, one hears that its run was opened.
        """
        return await self._shared.ask(due) if due else {}

    def _look_for_all(self, asked: Sequence[Sequence[Due]]) -> list[dict[str, Look]]:
        looks = self._look(tuple({one.episode_id: one for due in asked for one in due}.values()))
        heard: set[str] = set()
        given = []
        for due in asked:
            here = dict.fromkeys(one.episode_id for one in due)
            given.append({one: looks[one].again() if one in heard else looks[one] for one in here})
            heard |= here.keys()
        return given

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
