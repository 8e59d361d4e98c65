"""The provider never answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from drill.faults.plan import Break, Plan, Stream, read_int


@dataclass(frozen=True)
class Timeout:
    """Swallow the data and close the connection after `timeout_ms`; 0 holds it until the fault is taken away."""

    timeout_ms: int

    @classmethod
    def parse(cls, attributes: Mapping[str, object]) -> Self:
        """Read `timeout` in ms."""
        return cls(read_int(attributes, "timeout"))

    def attributes(self) -> dict[str, int | float | None]:
        """Return `timeout` in ms."""
        return {"timeout": self.timeout_ms}

    def apply(self, plan: Plan, stream: Stream, rng: random.Random) -> Plan:
        """Break the connection in this direction, unless an earlier fault did."""
        if plan.broken is not None:
            return plan
        return replace(plan, broken=Break(stream, self.timeout_ms / 1000 or None, reset=False))
