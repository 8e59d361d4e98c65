"""snapshot: write down everything that is not final, before anything is expired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.values import Text
from runbooks.verbs.step import Holder, StepParams, VerbName
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Snapshot(StepParams):
    """Hold where the snapshot goes."""

    to: Text
    verb: ClassVar[str] = VerbName.SNAPSHOT
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Snapshot:
        return cls(Text.read(fields["to"], where.at("to")))

    def line(self, context: Context) -> str:
        return (
            f"write all ids with their scores, every record that is not final, live decisions, the ledger, the "
            f"settings digest and the epoch of queue {context.settings.queue} to {self.to.resolve(context)}, with a "
            f"checksum; Redis keeps its data and notes the time ({context.keys(names.SNAPSHOT)})"
        )

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return (
            ("ready", telemetry.ready),
            ("delayed", telemetry.delayed),
            ("running", telemetry.running),
            ("unknown", telemetry.unknown),
            ("blocked", telemetry.blocked),
        )
