"""Hold what one look at a run gives a step, and what a step can say back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from automation.names import request_id
from automation.pace import Pace
from runbooks.context import Context
from runbooks.evidence import Evidence
from runbooks.model import Runbook, Step
from runbooks.plan import step_text
from sluicegate.errors import StoreUnavailable
from sluicegate.run_journal import Phase
from sluicegate.run_replies import JournalEntry, RunHistory, StepAnswer
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry

P = TypeVar("P")

_ANSWER_ATTEMPTS = 5


class Fenced(Exception):
    """Say that the run is no longer this executor's: stop at once and look again."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Say that the step goes on; `why` is shown to whoever watches.

    People are paged every `page_every_s` seconds of waiting, and at once where only a person can end it.
    """

    why: str = ""
    page_every_s: float | None = None
    needs_person: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """Say that the step is finished; `effect` is committed together with its last journal entry, which has `text`."""

    effect: str = "journal"
    detail: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """Say that the run rolls back, for the cause that the runbook gives a reason for; without the lock it just ends."""

    cause: str
    note: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Say that the run has ended with the step's own effect."""


Progress = Wait | Done | Failed | Ended


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold one look at an owned run: its journal, the figures of now, and the way to commit."""

    store: Store
    executor: str
    fence: str
    history: RunHistory
    telemetry: Telemetry
    runbook: Runbook
    step: Step
    context: Context
    evidence: Evidence = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    @property
    def run_id(self) -> str:
        return self.history.run.run_id

    def entries(self, phase: Phase | None = None) -> tuple[JournalEntry, ...]:
        """Give this step's journal entries, of one phase or all."""
        return tuple(
            entry
            for entry in self.history.journal
            if entry.seq == self.step.seq and (phase is None or entry.phase == phase)
        )

    @property
    def elapsed_s(self) -> float:
        """Give the seconds since the step started, by Redis TIME, without those in which a person held it."""
        started, at_ms = self.entries(Phase.STARTED), self.telemetry.at_ms
        return (at_ms - started[0].at_ms - self.history.run.held_ms(at_ms)) / 1000 if started else 0.0

    def may_probe(self) -> bool:
        """Say whether what this step waits for may be probed in this look."""
        return self.pace.due(f"{self.run_id}/{self.step.seq}")

    def approved_by(self) -> str | None:
        """Give who approved this step and why, or None."""
        return self.history.approvals.get(f"{self.step.seq} {self.step.verb}")

    async def commit(
        self,
        phase: Phase,
        effect: str = "journal",
        *,
        text: str = "",
        detail: Mapping[str, Any] | None = None,
        arguments: Mapping[str, object] | None = None,
    ) -> StepAnswer:
        """Make one effect with its journal entry; raises Fenced when the run is another's by now.

        A lost answer is asked for again under the same request id, so the effect happens once.
        """
        body = {
            "executor": self.executor,
            "run": self.run_id,
            "fence": self.fence,
            "request": request_id(),
            "effect": effect,
            "seq": self.step.seq,
            "verb": self.step.verb,
            "phase": phase.value,
            "text": text,
            "detail": json.dumps(detail or {}, sort_keys=True, separators=(",", ":")),
            **(arguments or {}),
        }
        answer = await commit_once(self.store, body)
        if answer.answer in ("stale", "unreadable"):
            raise Fenced(answer.answer)
        return answer

    def params(self, kind: type[P]) -> P:
        """Give the step's parameters as their verb's type."""
        if not isinstance(self.step.params, kind):
            raise TypeError(f"step {self.step.seq} is of verb {self.step.verb}, not of {kind.__name__}")
        return self.step.params

    def line(self) -> str:
        """Give the step's line, word for word as the plan shows it."""
        return step_text(self.step, self.runbook, self.context)


async def commit_once(store: Store, body: Mapping[str, Any]) -> StepAnswer:
    """Send one commit; repeat it under its request id while the store does not answer."""
    for attempt in range(_ANSWER_ATTEMPTS - 1):
        try:
            return await asyncio.to_thread(store.commit_step, body)
        except StoreUnavailable:
            await asyncio.sleep(0.1 * 2**attempt)
    return await asyncio.to_thread(store.commit_step, body)


class StepRunner(Protocol):
    """Advance one step of a verb by one look; called again until it is done, failed or ended."""

    async def __call__(self, turn: Turn) -> Progress: ...
