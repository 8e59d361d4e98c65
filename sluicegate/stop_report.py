"""Say what became of the leases a worker held when it stopped pulling. The parts add up (contract §3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Ended(StrEnum):
    """Name how one attempt let go of its lease."""

    FINISHED = "finished"  # its call ended by itself: succeeded, to be retried, failed or blocked
    EXPIRED = "expired"  # too little of the deadline was left
    REQUEUED = "requeued"  # cut or never called, and back at the head
    UNKNOWN = "unknown"  # cut, and a repeat is not safe
    LOST = "lost"  # the lease was no longer this worker's: nothing was released


@dataclass(frozen=True, slots=True)
class StopReport:
    """Count the leases that a worker held when it stopped pulling, by how each ended.

    `waiting` are the job ids whose leases are still held; the report is whole when none is. A lease that ran out, or
    was taken over, before the worker could release it is in none of the counts.
    """

    waiting: frozenset[str]
    finished: int = 0
    expired: int = 0
    requeued: int = 0
    unknown: int = 0

    @property
    def lease_released(self) -> int:
        """Give finished + expired + requeued + unknown."""
        return self.finished + self.expired + self.requeued + self.unknown

    @property
    def whole(self) -> bool:
        return not self.waiting

    def after(self, job_id: str, ended: Ended) -> StopReport:
        """Count the end of one job; one that was claimed since then is not this report's."""
        if job_id not in self.waiting:
            return self
        rest = replace(self, waiting=self.waiting - {job_id})
        match ended:
            case Ended.FINISHED:
                return replace(rest, finished=self.finished + 1)
            case Ended.EXPIRED:
                return replace(rest, expired=self.expired + 1)
            case Ended.REQUEUED:
                return replace(rest, requeued=self.requeued + 1)
            case Ended.UNKNOWN:
                return replace(rest, unknown=self.unknown + 1)
            case Ended.LOST:
                return rest

    def fields(self) -> dict[str, str | int]:
        """Give the report's fields in the order of its line."""
        return {
            "action": "stop_pull",
            "lease_released": self.lease_released,
            "expired": self.expired,
            "requeued": self.requeued,
            "unknown": self.unknown,
            "finished": self.finished,
        }

    def line(self) -> str:
        """Give `action=stop_pull lease_released=N expired=… requeued=… unknown=… finished=…`."""
        return " ".join(f"{name}={value}" for name, value in self.fields().items())
