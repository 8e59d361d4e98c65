"""freeze: close the gate and open the run, in one function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.verbs.step import VerbName
from runbooks.verdict import CheckResult
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.telemetry import WORKER_INFLIGHT, Telemetry


@dataclass(frozen=True, slots=True)
class Freeze:
    """Freeze without parameters: there is one way to close."""

    verb: ClassVar[VerbName] = VerbName.FREEZE

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Freeze:
        return cls()

    def line(self, context: Context) -> str:
        keys = context.keys
        written = ", ".join(
            [
                keys(names.DRAIN_STATE),
                keys(names.ADMISSION),
                keys(names.GATE),
                keys(names.EPOCH),
                keys(names.GATE_LOG),
                keys.run(context.run_id),
                keys.journal(context.run_id),
                keys(names.RUNS_LIVE),
                keys(names.LOCK_RUN),
            ]
        )
        seen = in_words(context.contract.timings.worker_seen_s)
        return (
            f"move the gate to drain/closed and open run {context.run_id}, in one function ({written}); "
            f"no worker is killed; done when every worker seen in the last {seen} has confirmed the epoch "
            f"or its leases ran out"
        )

    def checks(self, context: Context, telemetry: Telemetry) -> tuple[CheckResult, ...]:
        return ()

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ((WORKER_INFLIGHT, telemetry.worker_inflight),)
