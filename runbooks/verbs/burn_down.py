"""burn_down: let the workers pull the kept backlog while admission stays closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.gates import burn_down_forecast
from runbooks.quantity import in_words, plain
from runbooks.values import Duration, Ratio
from runbooks.verbs.step import Holder, NoData, StepParams, VerbName
from runbooks.verdict import CheckResult
from runbooks.where import Where
from sluicegate.telemetry import QUEUE_AGE_P95_SECONDS, Telemetry


@dataclass(frozen=True, slots=True)
class BurnDown(StepParams):
    """Hold what must fall in every window: the age by seconds, or the backlog by a share of its size at green."""

    window: Duration
    min_age_fall: Duration
    min_backlog_fall: Ratio
    no_data: NoData | None
    verb: ClassVar[str] = VerbName.BURN_DOWN
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> BurnDown:
        no_data = fields.get("no_data")
        return cls(
            window=Duration.read(fields["window"], where.at("window")),
            min_age_fall=Duration.read(fields["min_age_fall"], where.at("min_age_fall")),
            min_backlog_fall=Ratio.read(fields["min_backlog_fall"], where.at("min_backlog_fall")),
            no_data=None if no_data is None else NoData(no_data),
        )

    def line(self, context: Context) -> str:
        window, fall = in_words(self.window.resolve(context)), in_words(self.min_age_fall.resolve(context))
        share = plain(round(self.min_backlog_fall.resolve(context) * 100, 6))
        done = in_words(context.contract.thresholds.recovered_age_p95_seconds)
        return (
            f"let the workers pull the kept backlog, admission closed, until {QUEUE_AGE_P95_SECONDS} is under {done}; "
            f"in every {window} the age falls by {fall} or the backlog by {share}% of its size at green"
        )

    def checks(
        self, context: Context, telemetry: Telemetry, evidence: Evidence = NO_EVIDENCE
    ) -> tuple[CheckResult, ...]:
        return (burn_down_forecast(telemetry, context.contract),)

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return (
            ("unfinished", telemetry.unfinished),
            (QUEUE_AGE_P95_SECONDS, telemetry.queue_age_p95_seconds),
        )
