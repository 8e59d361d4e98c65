"""Name every command that takes a snapshot or puts one back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sluicegate import replies
from sluicegate.calls import Arguments, Calls, Words, flat
from sluicegate.pipeline import Pipeline, packed, packed_each
from sluicegate.snapshot_records import VERSION_FIELDS, JobLine, Place, container_of, version_in, version_of

# Records that a call is asked for.
_MOST_RECORDS = 100
# Payloads that are read at once: as many as would have about so many bytes if all were as long as the longest before.
_FIRST_ROWS, _MOST_ROWS, _ROWS_BYTES = 10, 100, 262_144
_VERSIONS = 250
# Parts of a restore that are on their way at once: one that is decided upon, one that waits for that, none more.
_UNDER_WAY = 2

Part = TypeVar("Part")
# What nearly all jobs have that wait: they have not moved since they came.
_FIRST = ["ready", None, None, None, None]
_FIRST_VERSION = version_of(*_FIRST)
_CANARY = VERSION_FIELDS.index("canary")

IdAndScore = tuple[str, str]
# A line with the version of what it holds.
Row = tuple[JobLine, str]


class SnapshotCalls(Calls):
    """Read a queue whole, in ranges, and write it again."""

    def snapshot_head(self) -> Mapping[str, Any]:
        """Give all that a snapshot holds beside jobs and refusals (see snapshot.lua)."""
        return self._call("snapshot", {})

    def snapshot_ids(self, container: str) -> Iterator[list[IdAndScore]]:
        """Give the ids of a container with their scores, a range after the other; the next is on its way meanwhile."""
        answer = self._hot("snapshot_ids", (container, "", ""))
        while answer:
            coming = self._start("snapshot_ids", (container, answer[-2], answer[-1]))
            try:
                yield replies.values(answer, 2)
            except BaseException:
                coming.abandon()
                raise
            answer = coming.answer()

    def snapshot_rows(self, container: str) -> Iterator[list[Row]]:
        """Give the open jobs of a container with record and payload, each with its version, some at a time.

        A record is of one instant, and its payload never changes. While some are used, the next are on their way.
        """
        size = _FIRST_ROWS

        def parts() -> Iterator[list[IdAndScore]]:
            for places in self.snapshot_ids(container):
                at = 0
                while at < len(places):
                    end = at + size  # it may change before the next part is asked for
                    yield places[at:end]
                    at = end

        for places, answers in self._read_many(parts(), self._records_asked, lambda part: 2 * len(part)):
            rows = _rows(places, answers)
            longest = max((len(line.payload) for line, _ in rows), default=0)
            size = max(1, min(2 * size, _MOST_ROWS, _ROWS_BYTES // max(1, longest)))
            yield rows

    def snapshot_jobs(self, ids: Sequence[str]) -> Iterator[list[Row]]:
        """Give those of some jobs that are open, as `snapshot_rows`; without a score where its container lacks it."""
        for start in range(0, len(ids), _FIRST_ROWS):
            yield self._rows_and_scores(ids[start : start + _FIRST_ROWS])

    def _rows_and_scores(self, ids: Sequence[str]) -> list[Row]:
        found: list[Row] = []
        unplaced: dict[str, str] = {}
        while ids:
            some = [(job_id, "") for job_id in ids]
            ((_, answers),) = self._read_many([some], self._records_asked, lambda part: 2 * len(part))
            rows = _rows(some, answers)
            ((_, scores),) = self._read_many([rows], self._scores_asked, len)
            before, unplaced = unplaced, {}
            for (line, version), score in zip(rows, scores, strict=True):
                if score is None and before.get(line.id) != version:
                    # It moved between the two questions; one that has not when it is asked for again has no place.
                    unplaced[line.id] = version
                    continue
                line.score = "" if score is None else f"{float(score):.17g}"
                found.append((line, version))
            ids = list(unplaced)
        return found

    def snapshot_versions(self, container: str) -> Iterator[list[Place]]:
        """Give the places of a container but for a run's canaries, in the same way.

        The version of what is no open job is empty.
        """

        def parts() -> Iterator[list[IdAndScore]]:
            for places in self.snapshot_ids(container):
                yield from (places[at : at + _VERSIONS] for at in range(0, len(places), _VERSIONS))

        for places, answers in self._read_many(parts(), self._versions_asked, len):
            # None is a key of another type.
            yield [
                (*place, _FIRST_VERSION if values == _FIRST else version_of(*values) if values else "")
                for place, values in zip(places, answers, strict=True)
                if not (values and values[_CANARY])
            ]

    def _records_asked(self, places: Sequence[IdAndScore]) -> bytes:
        ids = [job_id for job_id, _ in places]
        return packed_each(ids, ("HGETALL", self.keys.job("")), ("GET", self.keys.payload("")))

    def _versions_asked(self, places: Sequence[IdAndScore]) -> bytes:
        return packed_each([job_id for job_id, _ in places], ("HMGET", self.keys.job(""), *VERSION_FIELDS))

    def _scores_asked(self, rows: Sequence[Row]) -> bytes:
        containers = [self.keys(container_of(line.record) or "").encode(errors="surrogateescape") for line, _ in rows]
        return b"".join(
            [packed("ZSCORE", container, line.id) for container, (line, _) in zip(containers, rows, strict=True)]
        )

    def _read_many(
        self, parts: Iterable[Part], asked: Callable[[Part], bytes], answers: Callable[[Part], int]
    ) -> Iterator[tuple[Part, list[Any]]]:
        """Send what is asked for each part, and give it with its answers; the next part is sent before."""
        with self._pipeline() as pipeline:
            before: Part | None = None
            for part in parts:
                pipeline.send(asked(part), answers(part))
                if before is not None:
                    yield before, pipeline.receive(answers(before))
                before = part
            if before is not None:
                yield before, pipeline.receive(answers(before))

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

        Gives what became of each; while it is decided upon, the next part is made and sent.
        """
        if self._read_only or self._function_forbidden:
            yield from map(replies.put_back, (self._hot("restore", part) for part in parts))
            return
        with self._pipeline() as pipeline:
            under_way = 0
            for part in parts:
                pipeline.send(packed(*self._call_of("restore", part)), 1)
                under_way += 1
                if under_way == _UNDER_WAY:
                    yield _put_back(pipeline)
                    under_way -= 1
            for _ in range(under_way):
                yield _put_back(pipeline)

    def restore_end(self, restore: str, *, actor: str, note: str) -> str:
        """Take the mark away: all is back; gives moved or unchanged."""
        return str(self._call("restore_end", {"restore": restore, "actor": actor, "note": note})["answer"])


def _put_back(pipeline: Pipeline) -> tuple[str, Mapping[str, int]]:
    (answer,) = pipeline.receive(1)
    return replies.put_back(flat("restore", answer))


def _rows(places: Iterable[IdAndScore], answers: Sequence[Any]) -> list[Row]:
    """Make lines of records and payloads that came in turn; of what is no open job there is none."""
    rows = []
    for (job_id, score), record, payload in zip(places, answers[::2], answers[1::2], strict=True):
        if record:
            words = iter(record)
            fields = dict(zip(words, words, strict=True))
            version = version_in(fields)
            if version:
                rows.append((JobLine(job_id, score, fields, payload or ""), version))
    return rows


def _ranged(after: Arguments | None, **arguments: str | int) -> Arguments:
    return arguments if after is None else {**arguments, "after": dict(after)}
