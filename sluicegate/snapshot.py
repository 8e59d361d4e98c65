"""Write a queue down while it lives: what is on file is of one instant, or the file says it is not (contract §7.2).

No call may look at a whole queue, so jobs are read in ranges, each with its version. Then ids and versions alone are
walked again, and what differs from the file is read anew, until one whole walk finds no difference. A version never
comes back, so every job had the version on file from before that walk until after it: at the instant the walk began
the queue was what the file holds. With the gate in drain the second walk is nearly always still. With workers pulling
it may never be: then the file says `still: false`, and each job is as it was at some time between the first and the
last look, none twice. Refusals are read last; every one that was given before the snapshot began is there, unless it
has lapsed.

Memory grows with what moved meanwhile, not with the queue: the versions on file are kept in a file of their own.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from sluicegate.errors import NeverStill, NoContract
from sluicegate.job import FINAL_STATES
from sluicegate.replies import rows
from sluicegate.snapshot_file import FORMAT, LineKind, SnapshotWriter, Written
from sluicegate.store import Store

_LOOKS = 10

Row = Mapping[str, Any]
# The newest record of what moved since it was written; None for a job that has ended.
Corrections = dict[str, Row | None]


class Place(NamedTuple):
    """Hold a job's place in a container (the score as Redis writes it) and its version."""

    job_id: str
    score: str
    version: str

    @property
    def order(self) -> tuple[float, str]:
        """Give what a sorted set is sorted by."""
        return float(self.score), self.job_id


class Index:
    """Keep the places of all jobs on file, in the order in which they were written, in a file of their own."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._starts: dict[str, int] = {}

    def add(self, container: str, places: Sequence[Place]) -> None:
        """Add some places; containers come one after the other."""
        if container not in self._starts:
            self._starts[container] = self._file.tell()
        self._file.write(json.dumps([container, places]) + "\n")

    def places(self, container: str) -> Iterator[Place]:
        """Give the places in one container; one walk at a time."""
        if container not in self._starts:
            return
        self._file.seek(self._starts[container])
        while line := self._file.readline():
            name, places = json.loads(line)
            if name != container:
                return
            yield from map(Place._make, places)


def write_snapshot(store: Store, path: Path, *, moving: bool = False) -> Written:
    """Write the queue to `path`, which appears under its name only when it is whole.

    Raises OSError, StoreError, NoContract, and NeverStill where jobs move in every look, unless `moving` takes that as
    well.
    """
    with ExitStack() as stack:
        writer = stack.enter_context(SnapshotWriter(path))
        index = Index(stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent)))
        head = store.snapshot_head()
        if not head["contract"]:
            raise NoContract(
                f"Queue {store.queue} has no contract: it is not open here, or has lost it. "
                "Without one no snapshot of it can be restored."
            )
        containers = sorted(head["containers"])
        writer.write(LineKind.HEADER, _header(store.queue, head))
        written = _write_jobs(store, writer, containers, index)
        corrections, until_ms, still = _corrected(store, set(containers), index, moving=moving)
        for job_id, row in sorted(corrections.items()):
            writer.write(LineKind.CORRECTION, {"id": job_id, "row": row})
        if corrections:
            written -= sum(place.job_id in corrections for name in containers for place in index.places(name))
        jobs = written + sum(row is not None for row in corrections.values())
        refusals = _write_refusals(store, writer, int(head["horizon"]))
        counts: dict[str, Any] = {"jobs": jobs, "refusals": refusals, "still": still, "until_ms": until_ms}
        sha256 = writer.finish(counts)
    return Written(sha256, at_ms=int(head["at"]), drain_state=str(head["drain_state"]), **counts)


def _header(queue: str, head: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "format": FORMAT,
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


def _write_jobs(store: Store, writer: SnapshotWriter, containers: Iterable[str], index: Index) -> int:
    """Write every job as it is met, and its place into the index; gives how many lines."""
    count = 0
    for name in containers:
        for found in store.snapshot_rows(name):
            for _, _, _, text in found:
                writer.write_encoded(LineKind.JOB, text)
            index.add(name, [Place(*row[:3]) for row in found])
            count += len(found)
    return count


def _corrected(store: Store, containers: set[str], index: Index, *, moving: bool) -> tuple[Corrections, int, bool]:
    """Read anew what moved until a walk is still; gives what was read, when the last walk began, and whether it was."""
    corrections: Corrections = {}
    for _ in range(_LOOKS):
        head = store.snapshot_head()
        # The first job of a class has a container that was not there at the look before.
        containers |= head["containers"].keys()
        changed = _changed(store, sorted(containers), index, corrections)
        if not changed:
            return corrections, int(head["at"]), True
        corrections.update(_records(store, changed))
    if not moving:
        raise NeverStill(f"jobs moved in each of {_LOOKS} looks, {len(changed)} of them in the last")
    return corrections, int(store.snapshot_head()["at"]), False


def _changed(store: Store, containers: Iterable[str], index: Index, corrections: Corrections) -> set[str]:
    """Walk all ids and give those that are not as they were read."""
    changed: set[str] = set()
    met: set[str] = set()
    for name in containers:
        expected = (place for place in index.places(name) if place.job_id not in corrections)
        here = next(expected, None)
        for place in _now(store, name):
            if place == here and not corrections:
                here = next(expected, None)
                continue
            if place.job_id in corrections:
                row = corrections[place.job_id]
                (met if row is not None and row["version"] == place.version else changed).add(place.job_id)
                continue
            while here is not None and here.order < place.order:
                changed.add(here.job_id)
                here = next(expected, None)
            if here != place:
                changed.add(place.job_id)
            if here is not None and here.order == place.order:
                here = next(expected, None)
        if here is not None:
            changed.add(here.job_id)
        changed.update(place.job_id for place in expected)
    return changed | {job_id for job_id, row in corrections.items() if row is not None and job_id not in met}


def _now(store: Store, container: str) -> Iterator[Place]:
    for found in store.snapshot_versions(container):
        yield from map(Place._make, found)


def _records(store: Store, wanted: set[str]) -> Corrections:
    found: Corrections = dict.fromkeys(wanted)
    for row in rows(store.records(sorted(wanted)), "jobs"):
        if row["job"]["state"] not in FINAL_STATES and not row["job"].get("canary"):
            found[row["id"]] = row
    return found


def _write_refusals(store: Store, writer: SnapshotWriter, horizon_ms: int) -> int:
    count = 0
    after: Row | None = None
    while True:
        answer = store.snapshot_refusals(horizon_ms, after)
        for row in rows(answer, "rows"):
            writer.write(LineKind.REFUSAL, row)
            count += 1
        after = answer.get("after")
        if after is None:
            return count
