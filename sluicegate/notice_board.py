"""Who was told of what? A stream beside the queue, read by each receiver on its own.

A notice is written in the same function as what it tells of, so none is lost with a process. What was taken and not
told yet is taken again; its id is the key by which a receiver knows that it has it already.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.calls import Calls
from sluicegate.notice import Notice


@dataclass(frozen=True, slots=True)
class Taken:
    """Hold what a receiver is to be told next: its id, and the notice where it is one."""

    notice_id: str
    notice: Notice | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Say how many notices a receiver was not told of yet, and when the oldest was written (ms, 0 for none)."""

    count: int
    oldest_at_ms: int


class NoticeBoard(Calls):
    """Name every command that concerns notices; safe to share between threads."""

    def take(self, receiver: str, consumer: str, idle_ms: int) -> Taken | None:
        """Give the next notice for a receiver, the same again until it was told (see notices.lua)."""
        body = self._call("take_notice", {"receiver": receiver, "consumer": consumer, "idle_ms": idle_ms})
        if not body["found"]:
            return None
        return Taken(str(body["id"]), Notice.of(self.keys.queue, body))

    def told(self, receiver: str, notice_id: str) -> None:
        """Say that a receiver has it, or never will."""
        self._call("notice_told", {"receiver": receiver, "id": notice_id})

    def waiting(self, receiver: str) -> Waiting:
        """Say what a receiver was not told of yet."""
        body = self._call("notices_waiting", {"receiver": receiver})
        return Waiting(int(body["waiting"]), int(body["oldest_at"]))

    def still_pinned(self) -> bool:
        """Tell again of a pinned, closed gate; False where it is neither any more."""
        return bool(self._call("still_pinned", {})["told"])

    def rising(self) -> bool:
        """Tell of unknown and blocked jobs where there are more than were told of."""
        return bool(self._call("rising", {})["told"])
