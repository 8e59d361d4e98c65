"""drain: expire what cannot make its deadline any more, keep the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.values import Duration
from runbooks.verbs.step import Holder, StepParams, VerbName
from runbooks.where import Where
from sluicegate.settings import Contract
from sluicegate.telemetry import DEADLINE_SLACK_P10_SECONDS, DOOMED_JOBS, WORKER_INFLIGHT, Telemetry


def time_to_green_s(contract: Contract) -> float:
    """Give the seconds a passing row of canaries is expected to take: required × expected service time.

    The fix is not in it: how long it takes is not known, and what runs out of time meanwhile expires by itself.
    """
    return contract.canaries_required * contract.expected_service_s if contract.canary_classes else 0.0


@dataclass(frozen=True, slots=True)
class Drain(StepParams):
    """Hold the slack a job needs to be kept, and whether the time to green comes on top."""

    keep_slack: Duration
    plus_time_to_green: bool
    verb: ClassVar[str] = VerbName.DRAIN
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Drain:
        return cls(
            keep_slack=Duration.read(fields["keep_slack"], where.at("keep_slack")),
            plus_time_to_green=fields.get("plus") == "time_to_green",
        )

    def keep_slack_s(self, context: Context) -> float:
        """Give the seconds to the deadline under which a job is expired now."""
        extra = time_to_green_s(context.contract) if self.plus_time_to_green else 0.0
        return self.keep_slack.resolve(context) + extra

    def line(self, context: Context) -> str:
        keep = in_words(self.keep_slack_s(context))
        parts = in_words(self.keep_slack.resolve(context))
        if self.plus_time_to_green:
            parts += f" + {in_words(time_to_green_s(context.contract))} to green"
        return (
            f"expire every ready and delayed job with less than {keep} ({parts}) to its deadline "
            f"(job_expired, cause drain, {context.keys.failed('{date}')}); keep all others with their idempotency "
            f"keys; workers finish, requeue, expire or give up what is running; done when no ordinary job is under "
            f"a lease"
        )

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return (
            ("unfinished", telemetry.unfinished),
            (DOOMED_JOBS, telemetry.doomed),
            (DEADLINE_SLACK_P10_SECONDS, telemetry.deadline_slack_p10_seconds),
            (WORKER_INFLIGHT, telemetry.worker_inflight),
        )
