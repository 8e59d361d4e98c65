"""freeze: close the gate and open the run, in one function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.verbs.gate_move import written_by_a_move
from runbooks.verbs.step import Holder, StepParams, VerbName
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.telemetry import WORKER_INFLIGHT, Telemetry


@dataclass(frozen=True, slots=True)
class Freeze(StepParams):
    """Freeze without parameters: there is one way to close."""

    verb: ClassVar[str] = VerbName.FREEZE
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Freeze:
        return cls()

    def line(self, context: Context) -> str:
        keys, run = context.keys, context.run_id
        opened = ", ".join(
            [keys.run(run), keys.journal(run), keys(names.LOCK_RUN), keys(names.RUNS_LIVE), keys(names.RUNS_RECENT)]
        )
        seen = in_words(context.contract.timings.worker_seen_s)
        return (
            f"move the gate to drain/closed ({written_by_a_move(context)}) and open run {run} ({opened}), in one "
            f"function; no worker is killed; done when every worker seen in the last {seen} has confirmed the epoch "
            f"or its leases ran out"
        )

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ((WORKER_INFLIGHT, telemetry.worker_inflight),)
