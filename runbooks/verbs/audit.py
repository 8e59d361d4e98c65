"""audit: list the idempotency keys that were, or may have been, acted on twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.verbs.step import StepParams, VerbName
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.telemetry import DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, Telemetry


class AuditList(StrEnum):
    """Name what is listed; each is a list of idempotency keys in the run's journal."""

    CONFIRMED = "confirmed_duplicates"  # more than one effect
    SUSPECTED = "suspected_duplicates"  # a write with an old fence was refused


_SOURCES = {
    AuditList.CONFIRMED: "those with more than one effect (entries `duplicate`)",
    AuditList.SUSPECTED: "those of writes refused for their old fence (entries `stale_write`)",
}


@dataclass(frozen=True, slots=True)
class Audit(StepParams):
    """Hold which lists are made."""

    of: tuple[AuditList, ...]
    verb: ClassVar[str] = VerbName.AUDIT

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Audit:
        return cls(tuple(AuditList(name) for name in fields["of"]))

    def line(self, context: Context) -> str:
        lists = " and ".join(_SOURCES[one] for one in self.of)
        return (
            f"list idempotency keys out of {context.keys(names.RECONCILE_LOG)} into "
            f"{context.keys.journal(context.run_id)}: {lists}; the gate stays drain/closed and no job is touched"
        )

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return (
            (DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, telemetry.gate.duplicates_unacknowledged),
            ("unknown", telemetry.unknown),
        )
