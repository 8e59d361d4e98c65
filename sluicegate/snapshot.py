"""Write a queue down while it lives: what is on file is of one instant, or the file says it is not (contract §7.2).

No call may look at a whole queue, so jobs are read in ranges, each with its version. Then ids and versions alone are
walked again, and what differs from the file is read anew, until one whole walk finds no difference, and as many entries
as there were when it began: a job that went from where the walk was to come to where it had been is met nowhere. A
version never comes back, so every job had the version on file from before that walk until after it: at the instant the
walk began the queue was what the file holds. With the gate in drain the second walk is nearly always still. With
workers pulling it may never be: then the file says `still: false`, and each job is as it was at some time between the
first and the last look, none twice. Refusals are read last; every one that was given before the snapshot began is
there, unless it has lapsed.

Memory grows with what moved meanwhile, not with the queue: the versions on file are kept in a file of their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from sluicegate.errors import HalfRestored, NeverStill, NoContract
from sluicegate.functions import VERSION
from sluicegate.replies import rows
from sluicegate.snapshot_calls import Row
from sluicegate.snapshot_file import FORMAT, LineKind, SnapshotWriter, Written, encoded
from sluicegate.snapshot_lines import NotRight, all_right, check_refusal, header_of, is_right
from sluicegate.snapshot_records import Correction, JobLine, Place
from sluicegate.store import Store

_LOOKS = 10
# Places a line of the index: lines of one walk are compared with those of the next without parsing them.
_INDEX_LINE = 250

# The newest record of what moved since it was written; None for a job that has ended.
Corrections = dict[str, Row | None]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[str, list[Place]]).decode


class Index:
    """Keep the places of all jobs on file, in the order in which they were written, in a file of their own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._starts: dict[str, int] = {}

    def add(self, container: str, found: Iterable[Sequence[Place]]) -> None:
        """Add all places of a container."""
        self._starts[container] = self._file.tell()
        for places in _in_parts(found):
            self._file.write(_line(container, places))

    def lines(self, container: str) -> Iterator[bytes]:
        """Give the lines of a container; one walk at a time."""
        if container not in self._starts:
            return
        beginning = _encode([container])[:-1] + b","
        self._file.seek(self._starts[container])
        while (line := self._file.readline()).startswith(beginning):
            yield line

    def places(self, container: str) -> Iterator[Place]:
        """Give the places in one container; one walk at a time."""
        return _places(self.lines(container))


def _line(container: str, places: Sequence[Place]) -> bytes:
    return _encode((container, places)) + b"\n"


def _places(lines: Iterable[bytes]) -> Iterator[Place]:
    for line in lines:
        yield from _decode(line)[1]


def _in_parts(found: Iterable[Sequence[Place]]) -> Iterator[Sequence[Place]]:
    """Give the same places in parts of one size, but for the last."""
    rest: list[Place] = []
    for places in found:
        rest += places
        while len(rest) >= _INDEX_LINE:
            yield rest[:_INDEX_LINE]
            del rest[:_INDEX_LINE]
    if rest:
        yield rest


def _order(place: Place) -> tuple[float, str]:
    """Give what a sorted set is sorted by."""
    return float(place[1]), place[0]


def write_snapshot(store: Store, path: Path, *, moving: bool = False) -> Written:
    """Write the queue to `path`, in a folder that is there; it appears under its name only when it is whole.

    What was damaged by hand, so that no restore would take it, is left out, for it would keep all the rest out.
    Raises OSError, StoreError, NoContract, HalfRestored, and NeverStill where jobs move in every look, unless `moving`
    takes that as well.
    """
    with ExitStack() as stack:
        writer = stack.enter_context(SnapshotWriter(path))
        index = Index(stack.enter_context(tempfile.TemporaryFile(dir=path.parent)))
        head = store.snapshot_head()
        if not head["contract"]:
            raise NoContract(
                f"Queue {store.queue} has no contract: it is not open here, or has lost it. "
                "Without one no snapshot of it can be restored."
            )
        half_restored = bool(head.get("restoring"))
        if half_restored and path.exists():
            raise HalfRestored(
                f"A restore into queue {store.queue} is not complete, and {path} may hold what it lacks."
            )
        containers = sorted(head["containers"])
        header = _header(store.queue, head)
        try:
            header_of(header)
        except NotRight as error:
            raise NoContract(
                f"What queue {store.queue} is ruled by was damaged by hand, so no snapshot of it could be restored: "
                f"its header {error}."
            ) from error
        writer.write(LineKind.HEADER, header)
        written, left_out = _write_jobs(store, writer, containers, index)
        corrections, until_ms, still = _corrected(store, set(containers), index, moving=moving)
        lines = {job_id: None if row is None else row[0] for job_id, row in corrections.items()}
        if corrections:
            written -= sum(
                place[0] in corrections and place[0] not in left_out
                for name in containers
                for place in index.places(name)
            )
            left_out = left_out - lines.keys() | {row.id for row in filter(None, lines.values()) if not is_right(row)}
        for job_id, line in sorted(lines.items()):
            writer.write_lines(encoded([Correction(job_id, None if job_id in left_out else line)]))
        jobs = written + sum(line is not None and line.id not in left_out for line in lines.values())
        refusals = _write_refusals(store, writer, int(head["horizon"]), left_out)
        counts: dict[str, Any] = {"jobs": jobs, "refusals": refusals, "still": still, "until_ms": until_ms}
        sha256 = writer.finish(counts)
    return Written(
        sha256,
        at_ms=int(head["at"]),
        drain_state=str(head["drain_state"]),
        left_out=tuple(sorted(left_out)),
        half_restored=half_restored,
        **counts,
    )


def _header(queue: str, head: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "format": FORMAT,
        "records": VERSION,
        "queue": queue,
        "at_ms": head["at"],
        "epoch": head["epoch"],
        "drain_state": head["drain_state"],
        "pin": head["pin"],
        "settings_digest": head["digest"],
        "contract": head["contract"],
        "duplicates": {"confirmed": head["confirmed"], "acknowledged": head["acknowledged"]},
        "kill": head["kill"],
        "endpoint": head["endpoint"] or {},
    }


def _write_jobs(store: Store, writer: SnapshotWriter, containers: Iterable[str], index: Index) -> tuple[int, set[str]]:
    """Write every job as it is met, and its place into the index; gives how many lines, and what was left out."""
    count, left_out = 0, set[str]()

    def written(container: str) -> Iterator[list[Place]]:
        nonlocal count
        for found in store.snapshot_rows(container):
            lines = [line for line, _ in found]
            count += _write_right(writer, lines, left_out)
            yield [(line.id, line.score, version) for line, version in found]

    for name in containers:
        index.add(name, written(name))
    return count, left_out


def _write_right(writer: SnapshotWriter, lines: Sequence[JobLine], left_out: set[str]) -> int:
    """Write those of some jobs that are right, and add the others to `left_out`; gives how many were written."""
    if all_right(lines):
        try:
            writer.write_lines(encoded(lines))
        except UnicodeEncodeError:
            pass  # one of them holds what is no text; nothing was written
        else:
            return len(lines)
    left_out.update(line.id for line in lines if not is_right(line))
    right = [line for line in lines if line.id not in left_out]
    writer.write_lines(encoded(right))
    return len(right)


def _corrected(store: Store, containers: set[str], index: Index, *, moving: bool) -> tuple[Corrections, int, bool]:
    """Read anew what moved until a walk is still; gives what was read, when the last walk began, and whether it was."""
    corrections: Corrections = {}
    for _ in range(_LOOKS):
        head = store.snapshot_head()
        # The first job of a class has a container that was not there at the look before.
        containers |= head["containers"].keys()
        walk = Walk(store)
        changed = _changed(walk, sorted(containers), index, corrections)
        unmet = abs(sum(head["containers"].values()) - walk.entries)
        if not changed and not unmet:
            return corrections, int(head["at"]), True
        corrections.update(_records(store, changed))
    if not moving:
        raise NeverStill(f"jobs moved in each of {_LOOKS} looks, {max(len(changed), unmet)} of them in the last")
    return corrections, int(store.snapshot_head()["at"]), False


class Walk:
    """Give the places of open jobs, and count all entries met, those of what is no job as well, but for canaries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entries = 0

    def places(self, container: str) -> Iterator[list[Place]]:
        """Give the places in one container, some at a time."""
        for places in self._store.snapshot_versions(container):
            self.entries += len(places)
            yield [place for place in places if place[2]]


def _changed(walk: Walk, containers: Iterable[str], index: Index, corrections: Corrections) -> set[str]:
    """Walk all ids and give those that are not as they were read."""
    changed: set[str] = set()
    met: set[str] = set()
    for name in containers:
        expected, now = _from_first_difference(walk, name, index, corrections)
        wanted = (place for place in expected if place[0] not in corrections)
        here = next(wanted, None)
        for place in now:
            job_id, _, version = place
            if job_id in corrections:
                row = corrections[job_id]
                (met if row is not None and row[1] == version else changed).add(job_id)
                continue
            while here is not None and _order(here) < _order(place):
                changed.add(here[0])
                here = next(wanted, None)
            if here != place:
                changed.add(job_id)
            if here is not None and _order(here) == _order(place):
                here = next(wanted, None)
        if here is not None:
            changed.add(here[0])
        changed.update(place[0] for place in wanted)
    # One that no container has is met in none of them.
    return changed | {
        job_id for job_id, row in corrections.items() if row is not None and row[0].score and job_id not in met
    }


def _from_first_difference(
    walk: Walk, container: str, index: Index, corrections: Corrections
) -> tuple[Iterator[Place], Iterator[Place]]:
    """Pass over what is as it was, many places at once; gives what was expected and what is now from there on."""
    expected, found = index.lines(container), _in_parts(walk.places(container))
    for places in found:
        line = next(expected, b"")
        if line != _line(container, places) or not corrections.keys().isdisjoint(place[0] for place in places):
            return _places(chain([line] if line else [], expected)), chain(places, chain.from_iterable(found))
    return _places(expected), iter(())


def _records(store: Store, wanted: set[str]) -> Corrections:
    found: Corrections = dict.fromkeys(wanted)
    for some in store.snapshot_jobs(sorted(wanted)):
        found.update({row[0].id: row for row in some})
    return found


def _write_refusals(store: Store, writer: SnapshotWriter, horizon_ms: int, left_out: set[str]) -> int:
    count = 0
    after: Mapping[str, Any] | None = None
    while True:
        answer = store.snapshot_refusals(horizon_ms, after)
        for row in rows(answer, "rows"):
            try:
                check_refusal(row)
            except NotRight:
                left_out.add(str(row["key"]))
                continue
            writer.write(LineKind.REFUSAL, row)
            count += 1
        after = answer.get("after")
        if after is None:
            return count
