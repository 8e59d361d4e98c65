"""Every provider and backlog condition that the decision table tells apart, with its bounds on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sluicegate.gate import GateState, effective, effective_pin
from sluicegate.policy import Figures
from sluicegate.telemetry import ProviderWindow

REQUIRED = 3


def _window(calls: int, status_5xx: int = 0, timeouts: int = 0) -> ProviderWindow:
    return ProviderWindow(seconds=30.0, calls=calls, status_5xx=status_5xx, timeouts=timeouts)


class Provider(Enum):
    """Name a provider window; the value tells whether it must drain."""

    FINE = (_window(200), False)
    NO_CALLS = (_window(0), False)
    RARE_5XX = (_window(100, status_5xx=4), False)
    HIGH_5XX = (_window(100, status_5xx=5), True)
    RARE_TIMEOUTS = (_window(100, timeouts=9), False)
    HIGH_TIMEOUTS = (_window(100, timeouts=10), True)
    TOO_FEW_CALLS = (_window(19, status_5xx=4), False)
    TOTAL_HANG = (_window(5, timeouts=5), True)
    ONE_FAILED = (_window(20, status_5xx=1), False)
    TWO_FAILED = (_window(20, status_5xx=2), True)

    @property
    def window(self) -> ProviderWindow:
        return self.value[0]

    @property
    def must_drain(self) -> bool:
        return self.value[1]


AGES = (0.0, 14.0, 15.0, 19.0, 20.0, 24.0, 25.0)
# None: there is no unfinished job, so nothing is at risk.
SLACKS = (None, -1.0, 3.0, 5.0, 15.0, 16.0)


@dataclass(frozen=True)
class Condition:
    """Hold what the world looks like: the provider, the age p95 and the slack p10, both in seconds."""

    provider: Provider
    age: float
    slack: float | None

    @property
    def recovered(self) -> bool:
        """Say whether the backlog alone allows opening: age < 15 s and slack > 15 s."""
        return self.age < 15 and (self.slack is None or self.slack > 15)

    @property
    def must_drain(self) -> bool:
        """Say whether an admitting gate must drain now: the provider fails, or the age is past 25 s."""
        return self.provider.must_drain or self.age >= 25

    @property
    def must_reject(self) -> bool:
        """Say whether an admitting gate must at least reject: age from 20 s, or slack under 5 s."""
        return self.must_drain or self.age >= 20 or (self.slack is not None and self.slack < 5)


CONDITIONS = tuple(Condition(provider, age, slack) for provider in Provider for age in AGES for slack in SLACKS)
HEALTHY = Condition(Provider.FINE, 0.0, 50.0)


def figures(state: GateState, condition: Condition) -> Figures:
    """Give what the controller's one reading of the queue holds in this state under this condition."""
    return Figures(
        age_p95_seconds=condition.age,
        slack_p10_seconds=condition.slack,
        provider=condition.provider.window,
        drain_state=effective(state),
        canary_ok_count=REQUIRED if state.green else REQUIRED - 1,
        canaries_required=REQUIRED,
        green=state.green,
        duplicates_unacknowledged=int(state.duplicates),
        run_live=state.run is not None,
        rollback_reason=state.rollback_reason,
        pinned=effective_pin(state) is not None,
    )
