"""reopen: open the gate in steps once its gate has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.gates import reopen_gate
from runbooks.quantity import in_words, plain
from runbooks.values import Duration, Percents
from runbooks.verbs.gate_move import written_by_a_move
from runbooks.verbs.step import Holder, NoData, StepParams, VerbName
from runbooks.verdict import CheckResult
from runbooks.where import Where
from sluicegate.telemetry import (
    DEADLINE_SLACK_P10_SECONDS,
    PROVIDER_5XX_RATE,
    PROVIDER_TIMEOUT_RATE,
    QUEUE_AGE_P95_SECONDS,
    Telemetry,
)


class GateCheck(StrEnum):
    """Name the checks of the reopen gate; all of them are required."""

    GREEN = "green"  # enough canaries in a row
    SLACK = "slack_recovered"  # slack p10 above its bound, or nothing unfinished
    AGE = "age_recovered"  # age p95 under its bound
    PROVIDER = "provider_within_bounds"  # neither rate asks for a drain; too few calls say nothing
    DUPLICATES = "no_duplicates"  # none confirmed that nobody has acknowledged


@dataclass(frozen=True, slots=True)
class ReopenGate:
    """Hold which checks must pass together, and what happens without data."""

    all_of: tuple[GateCheck, ...]
    no_data: NoData | None


@dataclass(frozen=True, slots=True)
class Reopen(StepParams):
    """Hold the gate and the ramp: shares of new work in percent, and how long each lasts."""

    gate: ReopenGate | None
    ramp: Percents
    ramp_step: Duration
    verb: ClassVar[str] = VerbName.REOPEN
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Reopen:
        gate = fields.get("gate")
        return cls(
            gate=None if gate is None else _gate(gate),
            ramp=Percents.read(fields["ramp"], where.at("ramp")),
            ramp_step=Duration.read(fields["ramp_step"], where.at("ramp_step")),
        )

    def line(self, context: Context) -> str:
        bounds = context.contract.thresholds
        slack, age = in_words(bounds.recovered_slack_p10_seconds), in_words(bounds.recovered_age_p95_seconds)
        steps = ", ".join(str(percent) for percent in self.ramp.resolve(context))
        return (
            f"wait until green, {DEADLINE_SLACK_P10_SECONDS} > {slack} (or nothing unfinished), "
            f"{QUEUE_AGE_P95_SECONDS} < {age}, {PROVIDER_5XX_RATE} < {plain(bounds.drain_provider_5xx_rate)}, "
            f"{PROVIDER_TIMEOUT_RATE} < {plain(bounds.drain_provider_timeout_rate)} (or too few calls to tell) "
            "and no unacknowledged duplicate hold together; then move the gate to "
            f"admit/open ({written_by_a_move(context)}) at {steps}% of new work by hash of the key, "
            f"{in_words(self.ramp_step.resolve(context))} each; then clear the rollback reason and end the run"
        )

    def checks(
        self, context: Context, telemetry: Telemetry, evidence: Evidence = NO_EVIDENCE
    ) -> tuple[CheckResult, ...]:
        return reopen_gate(telemetry, context.contract)


def _gate(fields: Mapping[str, Any]) -> ReopenGate:
    no_data = fields.get("no_data")
    return ReopenGate(
        all_of=tuple(GateCheck(name) for name in fields["all"]),
        no_data=None if no_data is None else NoData(no_data),
    )
