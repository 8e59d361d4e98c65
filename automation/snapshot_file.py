"""Write the snapshot file: JSON lines, a header first, a checksum last, put in place only when whole (SPEC §7.2)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sluicegate.job import FINAL_STATES
from sluicegate.replies import rows
from sluicegate.store import Store

FORMAT = 1
_CHUNK = 100
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Written:
    """Say what a snapshot holds: the SHA-256 over all lines but the last, and how many jobs and refusals."""

    sha256: str
    jobs: int
    refusals: int


class NeverStill(Exception):
    """Say that jobs went on moving while they were written down, so that ids and records never agreed."""


def write_snapshot(store: Store, path: Path) -> Written:
    """Write the queue as it is, at a gate that is closed. Raises OSError, StoreError and NeverStill.

    The file appears under its name only when it is whole, and only its owner can read it: it holds payloads.
    """
    ids, jobs = _still(store)
    refusals = list(_live_refusals(store, rows(ids, "refusals")))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        digest = _write(partial, _lines(ids, jobs, refusals), len(jobs), len(refusals))
        partial.replace(path)
        _keep_name(path.parent)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return Written(digest, len(jobs), len(refusals))


def _write(partial: Path, lines: Iterator[str], jobs: int, refusals: int) -> str:
    """Write all lines and the checksum, down to the disk; gives the checksum."""
    digest = hashlib.sha256()
    with open(partial, "w", encoding="utf-8", opener=_private) as file:
        for line in lines:
            digest.update(line.encode())
            file.write(line)
        file.write(_line({"kind": "end", "sha256": digest.hexdigest(), "jobs": jobs, "refusals": refusals}))
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _keep_name(folder: Path) -> None:
    """Force the folder's entry to the disk, or the name could be lost with a machine that dies now."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _still(store: Store) -> tuple[Mapping[str, Any], list[Any]]:
    """Give the ids of one instant and the records that belong to them.

    Workers may still be finishing calls: what moved between two looks at the ids is read again, until nothing moved.
    """
    ids = store.snapshot_ids()
    places = _places(ids)
    found = _records(store, places)
    for _ in range(_ROUNDS):
        again = store.snapshot_ids()
        now = _places(again)
        moved = {job_id for job_id in {*places, *now} if places.get(job_id) != now.get(job_id)}
        ids, places = again, now
        if not moved:
            return ids, [found[job_id] for job_id in sorted(places) if job_id in found]
        found.update(_records(store, moved))
    raise NeverStill(f"jobs moved in each of {_ROUNDS} looks, the last time {len(moved)} of {len(places)}")


def _places(ids: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Give for each job the containers it is in; their scores may change (a renewed lease) without a move."""
    places: dict[str, tuple[str, ...]] = {}
    for name, container in sorted(ids["containers"].items()):
        for pair in _pairs(container):
            places[pair[0]] = (*places.get(pair[0], ()), name)
    return places


def _records(store: Store, wanted: Iterable[str]) -> dict[str, Any]:
    found = (record for chunk in _chunks(sorted(wanted)) for record in rows(store.records(chunk), "jobs"))
    return {record["id"]: record for record in found if record["job"]["state"] not in FINAL_STATES}


def _live_refusals(store: Store, keys: list[str]) -> Iterator[Any]:
    """Give the stored refusals that still stand; the index may name some that have lapsed."""
    for chunk in _chunks(keys):
        for row in rows(store.records([], chunk), "refusals"):
            if row["decision"].get("accepted") == "0":
                yield row


def _pairs(container: object) -> list[list[str]]:
    return cast("list[list[str]]", container) if isinstance(container, list) else []


def _chunks(items: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


def _lines(ids: Mapping[str, Any], jobs: list[Any], refusals: list[Any]) -> Iterator[str]:
    yield _line(
        {
            "kind": "sluicegate-snapshot",
            "format": FORMAT,
            "at_ms": ids["at"],
            "epoch": ids["epoch"],
            "settings_digest": ids["digest"],
            "drain_state": ids["drain_state"],
        }
    )
    for name, container in sorted(ids["containers"].items()):
        yield _line({"kind": "container", "name": name, "members": _pairs(container)})
    for record in jobs:
        yield _line({"kind": "job", **record})
    for refusal in refusals:
        yield _line({"kind": "refusal", **refusal})


def _line(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":")) + "\n"
