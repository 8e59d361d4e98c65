"""Name every command that takes a snapshot or puts one back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sluicegate import replies
from sluicegate.calls import Arguments, Calls, Coming, Words

# Records that a call is asked for.
_MOST_RECORDS = 100


class SnapshotCalls(Calls):
    """Read a queue whole, in ranges, and write it again."""

    def snapshot_head(self) -> Mapping[str, Any]:
        """Give all that a snapshot holds beside jobs and refusals (see snapshot.lua)."""
        return self._call("snapshot", {})

    def snapshot_rows(self, container: str) -> Iterator[list[replies.Values]]:
        """Give the records of a container, a range after the other; while one is used, the next is on its way.

        Each record is an id with its score, its version, and its line of the file without the kind.
        """
        return self._walked("snapshot_rows", container, 4)

    def snapshot_versions(self, container: str) -> Iterator[list[replies.Values]]:
        """Give the ids of a container with scores and versions, a range after the other, in the same way."""
        return self._walked("snapshot_versions", container, 3)

    def _walked(self, command: str, container: str, width: int) -> Iterator[list[replies.Values]]:
        answer = self._hot(command, (container, "", ""))
        while answer[0]:
            coming = self._start(command, (container, answer[0], answer[1]))
            try:
                yield replies.values(answer[2:], width)
            except BaseException:
                coming.abandon()
                raise
            answer = coming.answer()

    def snapshot_refusals(self, horizon_ms: int, after: Arguments | None = None) -> Mapping[str, Any]:
        """Give the next refusals that lapse by `horizon_ms`, and where to go on."""
        return self._call("snapshot_refusals", _ranged(after, horizon=horizon_ms))

    def records(self, ids: Sequence[str]) -> Mapping[str, Any]:
        """Give the records of jobs, in whatever state they are, in as many calls as their payloads need."""
        jobs: list[Any] = []
        left = list(ids)
        while left:
            body = self._call("records", {"ids": left[:_MOST_RECORDS]})
            jobs += replies.rows(body, "jobs")
            # A library from before the bound on payloads has looked at all of them.
            left = left[int(body.get("looked", _MOST_RECORDS)) :]
        return {"jobs": jobs}

    def restore_begin(self, arguments: Arguments) -> Mapping[str, Any]:
        """Close the gate and mark it as restoring (see restore.lua), on a server that may not know the library yet."""
        self.load()
        return self._call("restore_begin", arguments)

    def restore(self, parts: Iterable[Words]) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Put parts of a snapshot back, in order (see restore.lua for the words of a part).

        Gives what became of each; while it is decided upon, the next part is made.
        """
        under_way: Coming | None = None
        try:
            for part in parts:
                if under_way is not None:
                    yield replies.put_back(under_way.answer())
                under_way = self._start("restore", part)
            if under_way is not None:
                yield replies.put_back(under_way.answer())
        except BaseException:
            if under_way is not None:
                under_way.abandon()
            raise

    def restore_end(self, restore: str, *, actor: str, note: str) -> str:
        """Take the mark away: all is back; gives moved or unchanged."""
        return str(self._call("restore_end", {"restore": restore, "actor": actor, "note": note})["answer"])


def _ranged(after: Arguments | None, **arguments: str | int) -> Arguments:
    return arguments if after is None else {**arguments, "after": dict(after)}
