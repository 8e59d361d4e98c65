"""Say by the backlog limit's rules, with earliest deadline first, whether a class is full (contract §5). Pure.

The same as sluicegate/functions/_backlog.lua, for the simulation; a test compares them. All times in ms.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

_MOST_STEPS = 20
_LEAST_GROWTH = 1 / 8


@dataclass(frozen=True, slots=True)
class Class:
    """Hold what the contract says of a class, its share as a part of 1, and how long a job of it keeps a slot."""

    deadline_ms: int
    share: float
    service_ms: float


@dataclass(slots=True)
class Backlog:
    """Hold slots, margin and limit of a contract, and by class the deadlines of what waits, in order."""

    slots: int
    margin_ms: int
    limit: float
    classes: Mapping[str, Class]
    due: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give every class its list, empty where nothing was given."""
        self.due = {name: self.due.get(name, []) for name in self.classes}

    @property
    def shortest_ms(self) -> int:
        """Give what the shortest class has until its margin."""
        return min(one.deadline_ms for one in self.classes.values()) - self.margin_ms

    @property
    def reserve_ms(self) -> float:
        """Give what every job keeps beside its wait."""
        return (1 - self.limit) * self.shortest_ms

    def full(self, name: str, now: int, deadline: int) -> bool:
        """Say whether a job of a class with this deadline is refused."""
        one, left = self.classes[name], deadline - now - self.margin_ms
        if left <= 0:
            return True
        waiting = len(self.due[name])
        wait = waiting * one.service_ms / (self.slots * one.share)
        if waiting and wait > left - self.reserve_ms and not self._goes_first(name, now, deadline):
            return True
        return self._too_much_ahead(now, deadline)

    def _goes_first(self, name: str, now: int, deadline: int) -> bool:
        own = self.classes[name].deadline_ms
        alone = all(one.deadline_ms > own for other, one in self.classes.items() if other != name)
        return alone and deadline <= now + own

    def _due_by(self, instant: float) -> float:
        return sum(bisect_right(self.due[name], instant) * one.service_ms for name, one in self.classes.items())

    def _fits(self, work: float, now: int, instant: int) -> bool:
        return work <= 0 or work <= self.slots * (instant - now - self.margin_ms - self.reserve_ms)

    def _too_much_ahead(self, now: int, deadline: int) -> bool:
        everything, at = self._due_by(math.inf), deadline
        ends = [now + one.deadline_ms for one in self.classes.values()]
        growth = max(_LEAST_GROWTH, ((max(ends) - now) / (deadline - now)) ** (1 / _MOST_STEPS) - 1)
        while not self._fits(everything, now, at):
            if not self._fits(self._due_by(at), now, at):
                return True
            if at >= max(ends):
                return False
            step = math.ceil(max(self.shortest_ms / 2, (at - now) * growth))
            at = min(at + step, *(end for end in ends if end > at))
        return False
