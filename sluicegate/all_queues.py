"""What holds over all queues of one server: the switch, the breaker, and how many runs are live (contract §7).

It lies under a prefix of its own, in a cluster perhaps on another server: no function of a queue can reach it, so it is
asked beside the queue. Whatever can't be asked is not allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sluicegate.calls import Calls
from sluicegate.replies import Body, rows
from sluicegate.settings import Settings

# It has the prefix of a queue of this name, and a queue of this name has none of its keys.
NAME = "sluicegate"


@dataclass(frozen=True, slots=True)
class Holder:
    """Name a queue whose run counts as live, the run, and since when (ms, Redis TIME)."""

    queue: str
    run: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """Hold something that was switched on over all queues: since when (ms, Redis TIME), and what was said of it."""

    since_ms: int
    said: str

    @classmethod
    def of(cls, text: str) -> Ordered | None:
        since, _, said = text.partition(" ")
        if not text:
            return None
        # Written over by hand it is on all the same, since ever.
        return cls(int(since), said) if since.isdecimal() else cls(0, text)


@dataclass(frozen=True, slots=True)
class Standing:
    """Hold what holds over all queues now; `answer` is what a permit came to, where one was asked for."""

    at_ms: int
    kill: Ordered | None
    breaker: Ordered | None
    holders: tuple[Holder, ...]
    asked: tuple[str, ...]
    answer: str = ""

    @classmethod
    def of(cls, body: Body) -> Standing:
        return cls(
            at_ms=int(body["at"]),
            kill=Ordered.of(str(body["kill"])),
            breaker=Ordered.of(str(body["breaker"])),
            holders=tuple(Holder(row["queue"], row["run"], int(row["since"])) for row in rows(body, "holders")),
            asked=tuple(rows(body, "asked")),
            answer=str(body.get("answer", "")),
        )


class AllQueues(Calls):
    """Name every command that concerns all queues of a server; safe to share between threads."""

    @classmethod
    def over(cls, settings: Settings, *, read_only: bool = False) -> Self:
        """Prepare it for the settings' server; connects to nothing. Raises UsageError as `Store.of`."""
        return cls.of(settings, NAME, read_only=read_only)

    def standing(self) -> Standing:
        """Give what holds now."""
        return Standing.of(self._call("all_queues", {}))

    def permit(self, queue: str, run: str, limits: Mapping[str, int], gone: Sequence[Holder] = ()) -> Standing:
        """Ask whether a run may be opened that no named person asked for (see all_queues.lua).

        `limits` are what the queue's contract allows, as `open_run` gave them; `gone` are runs seen to be over.
        """
        over = [{"queue": holder.queue, "run": holder.run} for holder in gone]
        return Standing.of(self._call("permit", {"queue": queue, "run": run, "gone": over, **limits}))

    def hold_place(self, queue: str, run: str) -> None:
        """Count a live run, in the place of whatever its queue had."""
        self._call("hold_place", {"queue": queue, "run": run})

    def leave_place(self, queue: str, run: str) -> None:
        """Count a run no longer; nothing where another one has its place."""
        self._call("leave_place", {"queue": queue, "run": run})

    def kill_switch(self, *, on: bool, actor: str, reason: str) -> None:
        """Forbid, or allow again, every run on any queue that no named person asked for."""
        self._call("kill_all", {"on": on, "actor": actor, "reason": reason})

    def reset_breaker(self, actor: str, reason: str) -> bool:
        """Let runs be opened again after a storm; gives whether the breaker had tripped."""
        body: Mapping[str, Any] = self._call("reset_breaker", {"actor": actor, "reason": reason})
        return str(body["answer"]) == "moved"
