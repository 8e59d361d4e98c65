"""Say what an admission decision is: accepted, or refused with a reason and a time to come back (contract §5). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RefusalReason(StrEnum):
    """Name why a job was not admitted; the comment says when the caller may come back.

    A full class answers `<class>_limit` or `<cost_class>_limit`, which are names of their own and not listed here.
    """

    OVERLOADED = "overloaded"  # after 30 s
    ADMISSION_CLOSED = "admission_closed"  # after 30 s
    RAMP = "ramp"  # after 30 s: this key is outside the share admitted so far
    CONTROLLER_SILENT = "controller_silent"  # after 30 s: nobody watches the deadlines
    DEADLINE_UNREACHABLE = "deadline_unreachable"  # never, for that key
    UNKNOWN_CLASS = "unknown_class"  # never: declare the class first
    CONFLICT = "conflict"  # never: the key belongs to another payload


FINAL_REFUSALS = frozenset(
    {
        RefusalReason.DEADLINE_UNREACHABLE,
        RefusalReason.UNKNOWN_CLASS,
        RefusalReason.CONFLICT,
    }
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Hold the durable answer to one submission.

    `replayed` tells that the key was decided before; `retry_after_s` is None where coming back never helps.
    """

    accepted: bool
    job_id: str
    reason: str = ""
    retry_after_s: float | None = None
    replayed: bool = False

    @property
    def final(self) -> bool:
        """Say whether the same submission will always get this answer."""
        return self.accepted or self.reason in FINAL_REFUSALS
