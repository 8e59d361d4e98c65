"""The provider answers late."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from drill.faults.plan import Plan, Stream, read_int


@dataclass(frozen=True)
class Latency:
    """Delay by `latency_ms` ± `jitter_ms`, evenly spread as Toxiproxy spreads it; never below zero."""

    latency_ms: int
    jitter_ms: int

    @classmethod
    def parse(cls, attributes: Mapping[str, object]) -> Self:
        """Read `latency` and `jitter`, both in ms."""
        return cls(read_int(attributes, "latency"), read_int(attributes, "jitter"))

    def attributes(self) -> dict[str, int | float | None]:
        """Return `latency` and `jitter`, both in ms."""
        return {"latency": self.latency_ms, "jitter": self.jitter_ms}

    def apply(self, plan: Plan, stream: Stream, rng: random.Random) -> Plan:
        """Add a delay to the direction; several of them add up."""
        delay_s = max(0.0, self.latency_ms + rng.uniform(-1, 1) * self.jitter_ms) / 1000
        if stream == Stream.UPSTREAM:
            return replace(plan, request_delay_s=plan.request_delay_s + delay_s)
        return replace(plan, answer_delay_s=plan.answer_delay_s + delay_s)
