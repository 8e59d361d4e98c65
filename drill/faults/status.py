"""The provider's place answers with an error status, and the provider is not asked."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from drill.faults.plan import Plan, Stream, read_fraction, read_int


@dataclass(frozen=True)
class Status:
    """Answer `status` for this share of the requests, with a Retry-After in seconds where one is given."""

    status: int
    probability: float
    retry_after_s: int | None

    @classmethod
    def parse(cls, attributes: Mapping[str, object]) -> Self:
        """Read `status` (503), `probability` (1) and `retry_after_s` (none)."""
        patience = attributes.get("retry_after_s")
        return cls(
            read_int(attributes, "status", default=503, bounds=(200, 599)),
            read_fraction(attributes, "probability"),
            None if patience is None else read_int(attributes, "retry_after_s"),
        )

    def attributes(self) -> dict[str, int | float | None]:
        """Return the attributes as `parse` reads them."""
        return {"status": self.status, "probability": self.probability, "retry_after_s": self.retry_after_s}

    def apply(self, plan: Plan, stream: Stream, rng: random.Random) -> Plan:
        """Answer in the provider's place if the draw says so; the direction makes no difference."""
        if plan.status is not None or rng.random() >= self.probability:
            return plan
        return replace(plan, status=self.status, retry_after_s=self.retry_after_s)
