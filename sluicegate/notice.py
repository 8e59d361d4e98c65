"""What people are told of, a notice each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class NoticeKind(StrEnum):
    """Name what a notice tells of."""

    STARTED = "started"  # a run was opened
    HOLDING = "holding"  # a run waits for a person
    ROLLED_BACK = "rolled_back"  # a recovery failed: the gate is closed and pinned
    REOPENED = "reopened"  # a recovery ended: the gate is open
    ENDED = "ended"  # a run ended otherwise
    PINNED = "pinned"  # the gate was pinned
    STILL_PINNED = "still_pinned"  # and nobody came yet
    RELEASED = "released"  # the pin is gone
    SAID = "said"  # a runbook's step has something to say
    UNKNOWN_RISING = "unknown_rising"  # more jobs are unknown
    BLOCKED_RISING = "blocked_rising"  # more jobs are blocked


@dataclass(frozen=True, slots=True)
class Notice:
    """Hold one: `notice_id` is unique in its queue, `at_ms` Redis TIME; what is not known of it is empty."""

    queue: str
    notice_id: str
    at_ms: int
    kind: NoticeKind
    run: str = ""
    runbook: str = ""
    actor: str = ""
    reason: str = ""
    state: str = ""
    text: str = ""

    @property
    def key(self) -> str:
        """Give what receivers tell repeats by."""
        return f"sluicegate/{self.queue}/{self.notice_id}"

    @classmethod
    def of(cls, queue: str, body: Mapping[str, Any]) -> Notice | None:
        """Take one as the function gives it; None where somebody else wrote it."""
        try:
            kind, at_ms = NoticeKind(body["kind"]), int(body["at"])
        except (KeyError, ValueError):
            return None
        texts = {name: str(body.get(name, "")) for name in ("run", "runbook", "actor", "reason", "state", "text")}
        return cls(queue, str(body["id"]), at_ms, kind, **texts)
