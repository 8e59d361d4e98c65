"""recover: let canaries through, and start the provider window anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.verbs.step import VerbName
from runbooks.verdict import CheckResult
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Recover:
    """Recover without parameters: there is one recovering state."""

    verb: ClassVar[VerbName] = VerbName.RECOVER

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Recover:
        return cls()

    def line(self, context: Context) -> str:
        keys = context.keys
        return (
            f"move the gate to recovering/closed ({keys(names.DRAIN_STATE)}, {keys(names.GATE)}, {keys(names.EPOCH)}, "
            f"{keys(names.GATE_LOG)}), set {keys(names.CANARY_OK_COUNT)} to 0 and start the provider window anew: "
            f"only canaries are admitted and pulled"
        )

    def checks(self, context: Context, telemetry: Telemetry) -> tuple[CheckResult, ...]:
        return ()

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ()
