"""Say what a scenario is: phases that act and wait for a condition within a bound, then expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drill.load import Jobs, Submission
from drill.needs import ALL_PARTS, Needs
from drill.rig import Rig
from drill.timeline import Look
from drill.verdict import Expectation


@dataclass(frozen=True, slots=True)
class View:
    """Hold what a condition may look at. `phase_s` counts seconds of the full profile since the phase began."""

    look: Look
    phase_from_ms: int
    phase_s: float
    submissions: tuple[Submission, ...]

    @property
    def submitted_since(self) -> tuple[Submission, ...]:
        """Return what was submitted in this phase, oldest first."""
        return tuple(one for one in self.submissions if one.at_ms >= self.phase_from_ms)


@dataclass(frozen=True, slots=True)
class Condition:
    """Name a condition, ask it, and say what is seen of it; pure."""

    name: str
    holds: Callable[[View], bool]
    seen: Callable[[View], str]


Action = Callable[[Rig], None]


@dataclass(frozen=True, slots=True)
class Phase:
    """Do something once, then wait until a condition holds; `within_s` in seconds of the full profile."""

    name: str
    text: str
    until: Condition
    within_s: float
    act: Action | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Hold one scenario: what is there, what happens, and what must have been seen in the end."""

    name: str
    summary: str
    phases: tuple[Phase, ...]
    expectations: tuple[Expectation, ...]
    needs: Needs = ALL_PARTS
    # The queue of a scenario that brings its own jobs; without one a steady load comes in.
    jobs: Jobs | None = None
    # Whether the gate stays closed and pinned in the end, with the kept jobs behind it.
    ends_closed: bool = False
