"""recover: let canaries through, and start the provider window anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.verbs.gate_move import written_by_a_move
from runbooks.verbs.step import Holder, StepParams, VerbName
from runbooks.where import Where


@dataclass(frozen=True, slots=True)
class Recover(StepParams):
    """Recover without parameters: there is one recovering state."""

    verb: ClassVar[str] = VerbName.RECOVER
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Recover:
        return cls()

    def line(self, context: Context) -> str:
        return (
            f"move the gate to recovering/closed ({written_by_a_move(context)}), the canary count at 0 and the "
            f"provider window started anew; only canaries are admitted and pulled"
        )
