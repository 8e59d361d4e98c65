"""What harm did a history see, and which firings announced it? Pure; docs/guides/tune-one-threshold.md says the same.

Harm is a deadline that was missed or expired, or a gate that was not in `admit`: callers were refused. Misses that are
at most a longest deadline apart are one incident, for a job that was accepted in it can be late by then. A page was for
nothing where there was no harm from a longest deadline before it began until a longest deadline after that: whatever
was accepted when it came was done in time. Where an expression looks further back, so does its judge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from rules.backtest.replay import Firing


@dataclass(frozen=True, slots=True, order=True)
class Miss:
    """Hold deadlines of one class that were seen as missed or expired at one evaluation (Unix ms)."""

    at_ms: int
    class_name: str
    count: int


@dataclass(frozen=True, slots=True)
class Closing:
    """Hold a stretch in which the gate was in one state other than `admit`, up to when it was no longer, in Unix ms."""

    state: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Incident:
    """Hold misses that belong together: the first, the last, how many, and of which classes."""

    from_ms: int
    to_ms: int
    misses: int
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Harm:
    """Hold all the harm of a history; `reach_ms` is the longest deadline.

    `unseen` are the stretches (Unix ms) in which no deadline was counted, from the last count before to the first one
    after: what was missed meanwhile is seen at their end, or not at all.
    """

    misses: tuple[Miss, ...]
    closings: tuple[Closing, ...]
    reach_ms: int
    unseen: tuple[tuple[int, int], ...] = ()

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Put misses that are at most `reach_ms` apart together."""
        found: list[list[Miss]] = []
        for miss in sorted(self.misses):
            if found and miss.at_ms - found[-1][-1].at_ms <= self.reach_ms:
                found[-1].append(miss)
            else:
                found.append([miss])
        return tuple(
            Incident(
                together[0].at_ms,
                together[-1].at_ms,
                sum(miss.count for miss in together),
                tuple(sorted({miss.class_name for miss in together})),
            )
            for together in found
        )

    @property
    def shut(self) -> tuple[tuple[int, int], ...]:
        """Join the stretches in which the gate was not in `admit`, whatever the state."""
        joined: list[tuple[int, int]] = []
        for one in sorted(self.closings, key=lambda closing: closing.from_ms):
            if joined and one.from_ms <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], one.to_ms)
            else:
                joined.append((one.from_ms, one.to_ms))
        return tuple(joined)

    def near(self, firing: Firing, looks_back_ms: int = 0) -> bool:
        """Tell whether there was harm close enough to a firing's start for the page to have been about it."""
        begins = firing.from_ms - max(self.reach_ms, looks_back_ms)
        ends = firing.from_ms + self.reach_ms
        at = bisect_left(self.misses, begins, key=lambda miss: miss.at_ms)
        missed = at < len(self.misses) and self.misses[at].at_ms <= ends
        return missed or any(one.from_ms <= ends and one.to_ms >= begins for one in self.closings)

    def lead_ms(self, incident: Incident, firings: Sequence[Firing]) -> int | None:
        """Give how long before an incident's first miss the first page about it began; after it, it is negative.

        A page is about an incident that begins at most `reach_ms` before its first miss and at most that after its
        last; None where none did.
        """
        begins, ends = incident.from_ms - self.reach_ms, incident.to_ms + self.reach_ms
        about = [one.from_ms for one in firings if begins <= one.from_ms <= ends]
        return incident.from_ms - min(about) if about else None

    def fired_already(self, incident: Incident, firings: Sequence[Firing]) -> bool:
        """Tell whether something had fired for so long when an incident began that it announced nothing."""
        return any(one.from_ms < incident.from_ms - self.reach_ms and one.to_ms > incident.from_ms for one in firings)
