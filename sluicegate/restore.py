"""Put a snapshot back: onto a server without the queue, or beside what a live queue holds (contract §7.2, §8).

The file is checked whole before the first write. Then the gate is closed and marked, jobs and refusals that are not
there are put back in batches, and the mark goes. Until then nobody opens the gate; the same restore again completes
what was cut short, for nothing that is there is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from sluicegate.job import JobState
from sluicegate.keys import Keys
from sluicegate.snapshot_lines import Header
from sluicegate.snapshot_reading import Content, SnapshotReader
from sluicegate.snapshot_records import JobLine, Refusal
from sluicegate.store import Store

_ROWS_A_CALL = 100
_BYTES_A_CALL = 131_072

_DELAYED = JobState.DELAYED.value
# What the server gives a job that comes back.
_GIVEN_ANEW = frozenset({"worker", "restored_fence", "restored_state", "restored_at"})

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wish:
    """Say what to restore and in whose name.

    suspect_unsafe: pending jobs of `unsafe` classes come back unknown. take_over: another restore that was cut short is
    given up, and what it put back stays. dry_run: everything is looked at and nothing written.
    """

    path: Path
    actor: str
    reason: str
    dry_run: bool = False
    suspect_unsafe: bool = False
    take_over: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """Say what came of it.

    answer: clean (there was no queue), live, resumed, or why nothing was done (see restore_begin in restore.lua; and
    `interrupted`: somebody else's restore took over in the middle; with `too_old` why is `begun` where that came to be
    meanwhile). counts: jobs by the state they came back in, and
    kept (there already), refusal, lapsed.
    """

    answer: str
    header: Header
    content: Content
    counts: Counter[str]
    why: str = ""
    digest: str = ""

    @property
    def done(self) -> bool:
        return self.answer in ("clean", "live", "resumed")

    @property
    def jobs(self) -> int:
        """Count the jobs that were put back."""
        return sum(count for kind, count in self.counts.items() if kind not in ("kept", "refusal", "lapsed"))


def restore(store: Store, wish: Wish) -> Restored:
    """Restore a snapshot. Raises SnapshotRefused before anything is written, and StoreError."""
    with SnapshotReader(wish.path) as reader:
        header, content = reader.header, reader.content
        begun = store.restore_begin(_beginning(wish, header, content))
        answer = str(begun["answer"])
        counts: Counter[str] = Counter()
        result = Restored(answer, header, content, counts, str(begun.get("why", "")), str(begun.get("digest", "")))
        if not result.done:
            return result
        asked = _asked(wish, header, content)
        for said, counted in store.restore((*asked, *words) for words in _parts(reader)):
            if said == "too_old":
                return Restored("too_old", header, content, counts, why="begun")
            if said != "ok":
                return Restored("interrupted", header, content, counts)
            counts.update(counted)
        if not wish.dry_run:
            store.restore_end(content.sha256, actor=wish.actor, note=_note(result, wish))
    return result


def _beginning(wish: Wish, header: Header, content: Content) -> Arguments:
    return {
        "restore": content.sha256,
        "actor": wish.actor,
        "reason": wish.reason,
        "take_over": wish.take_over,
        "suspect": wish.suspect_unsafe,
        "dry": wish.dry_run,
        "at": header.at_ms,
        "epoch": str(header.epoch),
        "contract": header.contract,
        "digest": header.digest,
        "classes": content.counts.classes,
        "costs": content.counts.costs,
        "confirmed": header.confirmed,
        "acknowledged": header.acknowledged,
        "kill": header.kill,
        "endpoint": header.endpoint,
        "prefix": Keys.for_queue(header.queue).prefix,
    }


def _asked(wish: Wish, header: Header, content: Content) -> tuple[str, ...]:
    """Give what each part begins with (see restore.lua)."""
    contract = header.contract if wish.dry_run else ""
    return (content.sha256, str(int(wish.suspect_unsafe)), str(int(wish.dry_run)), contract)


def _note(result: Restored, wish: Wish) -> str:
    counts = result.counts
    return (
        f"{wish.reason}: {result.jobs} jobs ({counts['unknown']} unknown) and {counts['refusal']} refusals of "
        f"{result.header.at_ms} back, {counts['kept']} were there; snapshot {result.content.sha256[:16]}"
    )


def _parts(reader: SnapshotReader) -> Iterator[list[str]]:
    """Give the words of as many jobs and refusals as one call can put back without holding the server up."""
    words: list[str] = []
    count = size = 0
    for row in chain.from_iterable(reader.rows()):
        if isinstance(row, Refusal):
            words += _refusal_words(row)
        else:
            words += _job_words(row)
            size += len(row.payload)
        count += 1
        if count == _ROWS_A_CALL or size >= _BYTES_A_CALL:
            yield words
            words, count, size = [], 0, 0
    if words:
        yield words


def _job_words(row: JobLine) -> list[str]:
    """Give a job's words (see _portable.lua); the record is used up by it."""
    record = row.record
    take = record.pop
    state = take("state")
    place = record["ready_at"] if state == _DELAYED else record.get("eligible") or record["admitted_at"]
    cost = record.get("cost", "-")
    words = ["job", row.id, row.payload, take("class"), cost, state, take("deadline"), place, row.score]
    words += (take("fence", "0"), take("rev", "1"))
    if not _GIVEN_ANEW.isdisjoint(record):
        for name in _GIVEN_ANEW & record.keys():
            del record[name]
    words.append(str(2 * len(record)))
    words += chain.from_iterable(record.items())
    return words


def _refusal_words(row: Refusal) -> list[str]:
    """Give a refusal's words (see _portable.lua)."""
    decision = row.decision
    return ["refusal", row.key, *(decision[name] for name in ("fp", "reason", "retry_at", "at")), row.ends_at]
