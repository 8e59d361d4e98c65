"""reject: close admission where it is open; the workers go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.verbs.gate_move import written_by_a_move
from runbooks.verbs.step import Holder, StepParams, VerbName
from runbooks.where import Where
from sluicegate.telemetry import ADMISSION_RATIO, Telemetry


@dataclass(frozen=True, slots=True)
class Reject(StepParams):
    """Reject without parameters: it is the one gate move of a run that holds no lock."""

    verb: ClassVar[str] = VerbName.REJECT
    holder: ClassVar[Holder] = Holder.BESIDE

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Reject:
        return cls()

    def line(self, context: Context) -> str:
        return (
            f"move the gate from admit to reject_new/closed ({written_by_a_move(context)}); workers go on; a gate "
            "that is tighter stands as it is; during a ramp the live run's own gate decides, and this waits"
        )

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ((ADMISSION_RATIO, telemetry.gate.admission_ratio),)
