"""Hold what one scrape found out about each queue: its figures, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sluicegate.telemetry import Part, Telemetry


class Failure(StrEnum):
    """Name why a queue has no figures in a scrape; each is gone at the first scrape that works."""

    UNAVAILABLE = "unavailable"  # Redis: refused, hung, loading, broken connection
    REJECTED = "rejected"  # whoever fixes the permission, or the key of a wrong type
    DAMAGED = "damaged"  # whoever wrote over the queue's data, or took some of it away
    LATE = "late"  # Redis or the network; or a longer scrape timeout
    INTERNAL = "internal"  # us: a bug


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold one queue's families of this scrape, or the failure and its text; `redis_up` says that Redis was read.

    Where parts are damaged there are both: the figures that are made from the others, and the failure.
    """

    queue: str
    redis_up: bool
    telemetry: Telemetry | None = None
    # The lines of each figure of the catalogue, in its order; none where nothing was read.
    lines: tuple[bytes, ...] = ()
    failure: Failure | None = None
    detail: str = ""
    damaged: frozenset[Part] = frozenset()


@dataclass(frozen=True, slots=True)
class Scrape:
    """Hold the readings of all queues and how long they took, in seconds."""

    readings: tuple[Reading, ...]
    duration_s: float

    @property
    def complete(self) -> bool:
        """Say whether every queue could be read."""
        return all(reading.failure is None for reading in self.readings)
