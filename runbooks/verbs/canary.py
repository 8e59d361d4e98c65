"""canary: prove the path with harmless jobs through the real workers, class after class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.gates import canary_gate
from runbooks.quantity import in_words
from runbooks.values import Count
from runbooks.verbs.approve import approve_command
from runbooks.verbs.step import Holder, NoData, StepParams, VerbName
from runbooks.verdict import CheckResult
from runbooks.where import Where
from sluicegate.telemetry import CANARY_OK_COUNT, Telemetry


@dataclass(frozen=True, slots=True)
class Canary(StepParams):
    """Hold how many successes in a row are green, and how many failures end the run."""

    required: Count
    failures_max: Count
    no_data: NoData | None
    verb: ClassVar[str] = VerbName.CANARY
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Canary:
        no_data = fields.get("no_data")
        return cls(
            required=Count.read(fields["required"], where.at("required")),
            failures_max=Count.read(fields["failures_max"], where.at("failures_max")),
            no_data=None if no_data is None else NoData(no_data),
        )

    def line(self, context: Context) -> str:
        contract = context.contract
        if not contract.canary_classes:
            approve = approve_command(context, self.verb)
            return f"no class declares a canary: a named person passes this step: {approve}"
        within = ", ".join(
            f"{name} {in_words(contract.canary_max_latency_s(name))}" for name in contract.canary_classes
        )
        return (
            f"submit canaries canary:{context.run_id}:{{class}}:{{n}} in turn and let the workers run them until "
            f"{self.required.resolve(context)} in a row answered 200 in time ({within}); a failure starts the count "
            f"anew, {self.failures_max.resolve(context)} failures end it; at green the waiting ones are cancelled"
        )

    def checks(
        self, context: Context, telemetry: Telemetry, evidence: Evidence = NO_EVIDENCE
    ) -> tuple[CheckResult, ...]:
        return canary_gate(telemetry, context.contract)

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return ((CANARY_OK_COUNT, telemetry.gate.canary_ok_count), ("canary_failures", telemetry.gate.canary_failures))
