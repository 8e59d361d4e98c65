"""approve: wait for a named person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.quantity import in_words
from runbooks.values import Duration
from runbooks.verbs.step import StepParams, VerbName
from runbooks.verdict import CheckResult
from runbooks.watch import Watch
from runbooks.where import Where
from sluicegate.telemetry import DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, Telemetry


def approve_command(context: Context, verb: str) -> str:
    """Give the command by which a named person passes a step of this run."""
    return f"`sluicegate automation approve {context.run_id} {verb} --as NAME --reason WHY`"


class Acknowledges(StrEnum):
    """Name what an approval takes note of."""

    DUPLICATES = "duplicates"  # those known by then; only they stop counting
    NOTHING = "nothing"  # the approval only lets the run go on


@dataclass(frozen=True, slots=True)
class Approve(StepParams):
    """Hold what the person acknowledges, how often people are paged until then, and what is watched meanwhile."""

    acknowledges: Acknowledges
    page_every: Duration
    gate: Watch | None
    verb: ClassVar[str] = VerbName.APPROVE

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Approve:
        return cls(
            acknowledges=Acknowledges(fields["acknowledges"]),
            page_every=Duration.read(fields["page_every"], where.at("page_every")),
            gate=None if fields.get("gate") is None else Watch.read(fields["gate"], where.at("gate")),
        )

    def line(self, context: Context) -> str:
        what = {
            Acknowledges.DUPLICATES: "acknowledges the duplicate side effects listed by then",
            Acknowledges.NOTHING: "lets the run go on",
        }[self.acknowledges]
        watched = f"; meanwhile {self.gate.worded(context)} must hold" if self.gate is not None else ""
        return (
            f"wait until a named person {what}: {approve_command(context, self.verb)}{watched}; "
            f"page every {in_words(self.page_every.resolve(context))} until then; no gate is moved"
        )

    def checks(
        self, context: Context, telemetry: Telemetry, evidence: Evidence = NO_EVIDENCE
    ) -> tuple[CheckResult, ...]:
        return () if self.gate is None else self.gate.judge(telemetry, context, evidence).checks

    def queries(self, context: Context) -> tuple[str, ...]:
        return () if self.gate is None else self.gate.queries(context)

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ((DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, telemetry.gate.duplicates_unacknowledged),)
