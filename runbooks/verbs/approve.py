"""approve: wait for a named person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.values import Duration
from runbooks.verbs.step import VerbName
from runbooks.verdict import CheckResult
from runbooks.where import Where
from sluicegate.telemetry import DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, Telemetry


def approve_command(context: Context, verb: VerbName) -> str:
    """Give the command by which a named person passes a step of this run."""
    return f"`sluicegate automation approve {context.run_id} {verb} --as NAME --reason WHY`"


class Acknowledges(StrEnum):
    """Name what an approval takes note of."""

    DUPLICATES = "duplicates"  # those known by then; only they stop counting
    NOTHING = "nothing"  # the approval only lets the run go on


@dataclass(frozen=True, slots=True)
class Approve:
    """Hold what the person acknowledges, and how often people are paged until then."""

    acknowledges: Acknowledges
    page_every: Duration
    verb: ClassVar[VerbName] = VerbName.APPROVE

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Approve:
        return cls(
            acknowledges=Acknowledges(fields["acknowledges"]),
            page_every=Duration.read(fields["page_every"], where.at("page_every")),
        )

    def line(self, context: Context) -> str:
        what = {
            Acknowledges.DUPLICATES: "acknowledges the duplicate side effects listed by then",
            Acknowledges.NOTHING: "lets the run go on",
        }[self.acknowledges]
        return (
            f"wait until a named person {what}: {approve_command(context, self.verb)}; "
            f"page every {in_words(self.page_every.resolve(context))} until then; no gate is moved"
        )

    def checks(self, context: Context, telemetry: Telemetry) -> tuple[CheckResult, ...]:
        return ()

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ((DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, telemetry.gate.duplicates_unacknowledged),)
