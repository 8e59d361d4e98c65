"""Write the snapshot file: JSON lines, a header first, a checksum last, put in place only when whole (SPEC §7.2)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sluicegate.replies import rows
from sluicegate.store import Store

FORMAT = 1
_CHUNK = 100
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Written:
    """Say what a snapshot holds: the SHA-256 over all lines but the last, and how many jobs and refusals."""

    sha256: str
    jobs: int
    refusals: int


def write_snapshot(store: Store, path: Path) -> Written:
    """Write the queue as it is, at a gate that is closed. Raises OSError and StoreError.

    The ids are those of one instant; their records are read in chunks, and one whose job has moved on since then is
    read again, so that ids and records agree.
    """
    ids = store.snapshot_ids()
    jobs = _records(store, ids)
    refusals = [row for chunk in _chunks(rows(ids, "refusals")) for row in rows(store.records([], chunk), "refusals")]
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        for line in _lines(ids, jobs, refusals):
            digest.update(line.encode())
            file.write(line)
        file.write(_line({"kind": "end", "sha256": digest.hexdigest(), "jobs": len(jobs), "refusals": len(refusals)}))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return Written(digest.hexdigest(), len(jobs), len(refusals))


def _records(store: Store, ids: Mapping[str, Any]) -> list[Any]:
    """Read every record, and those that changed meanwhile again, a bounded number of times."""
    wanted = sorted({pair[0] for container in ids["containers"].values() for pair in _pairs(container)})
    found: dict[str, Any] = {}
    for _ in range(_ROUNDS):
        for chunk in _chunks(wanted):
            for record in rows(store.records(chunk), "jobs"):
                found[record["id"]] = record
        wanted = [job_id for job_id in wanted if job_id in found and _changed_since(found[job_id], ids)]
        if not wanted:
            break
    return [found[job_id] for job_id in sorted(found)]


def _changed_since(record: Mapping[str, Any], ids: Mapping[str, Any]) -> bool:
    """Say whether a record shows a state whose container did not hold the job at the instant of the ids."""
    container = {"ready": "queue:enqueued", "delayed": "queue:delayed", "running": "queue:leases"}.get(
        record["job"]["state"]
    )
    return container is not None and record["id"] not in {pair[0] for pair in _pairs(ids["containers"][container])}


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
