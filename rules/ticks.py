"""Count time as the tests do: in steps on which a scrape and an evaluation fall together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rules.scope import Scope


@dataclass(frozen=True, slots=True)
class Ticks:
    """Hold the pace of scrapes and evaluations in whole ms, so that no boundary is blurred."""

    scrape_ms: int
    evaluation_ms: int

    @classmethod
    def of(cls, scope: Scope) -> Ticks:
        return cls(round(scope.timing.scrape_s * 1000), round(scope.timing.evaluation_s * 1000))

    @property
    def step_s(self) -> float:
        return math.lcm(self.scrape_ms, self.evaluation_ms) / 1000

    @property
    def evaluation_s(self) -> float:
        return self.evaluation_ms / 1000

    def aligned(self, seconds: float) -> float:
        """Round a duration up to a step."""
        return math.ceil(round(seconds / self.step_s, 9)) * self.step_s

    def evaluated(self, seconds: float) -> float:
        """Round a duration up to an evaluation: that is when Prometheus sees that it has passed."""
        return math.ceil(round(seconds / self.evaluation_s, 9)) * self.evaluation_s

    def last_evaluation_before(self, seconds: float) -> float:
        """Give the last evaluation before a moment."""
        return (math.ceil(round(seconds / self.evaluation_s, 9)) - 1) * self.evaluation_s

    def evaluated_after(self, seconds: float) -> float:
        """Give the first evaluation after a moment."""
        return (math.floor(round(seconds / self.evaluation_s, 9)) + 1) * self.evaluation_s

    def samples(self, seconds: float) -> int:
        """Count the scrapes in a duration that is a whole number of steps."""
        return round(seconds * 1000) // self.scrape_ms
