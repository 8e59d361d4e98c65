"""The snapshot file: whole, true to the queue, and never half there."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from automation.snapshot_file import NeverStill, write_snapshot
from sluicegate.store import Store
from tests.automation_parts import Queue, quick


@pytest.fixture
def queue(redis_url: str, tmp_path: Path) -> Iterator[Queue]:
    """Return a queue that holds something of every kind a snapshot has to keep."""
    queue = Queue(redis_url, quick(tmp_path, max_running=50))
    queue.submit(230, "test-patch")
    jobs = queue.store.claim("w1", "r1", 6).jobs
    for job, outcome in zip(jobs, ("retry", "unknown", "succeeded", "failed"), strict=False):
        assert queue.store.intent("w1", job.job_id, job.fence) == "go"
        settled = {"worker": "w1", "id": job.job_id, "fence": str(job.fence), "request": job.job_id, "outcome": outcome}
        queue.store.settle({**settled, "delay_ms": 20_000, "call": {"kind": "ok", "status": 200, "latency_ms": 5}})
    assert queue.store.intent("w1", jobs[4].job_id, jobs[4].fence) == "go"
    queue.open_run()
    assert queue.submit(120) == ["admission_closed"] * 120
    yield queue
    queue.close()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_it_holds_all_that_is_not_final_with_decisions_ledger_and_checksum(queue: Queue, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "snapshot.json"

    written = write_snapshot(queue.store, path)

    header, *body, end = lines_of(path)
    raw = path.read_bytes().splitlines(keepends=True)
    assert end == {"kind": "end", "sha256": written.sha256, "jobs": 228, "refusals": 120}
    assert hashlib.sha256(b"".join(raw[:-1])).hexdigest() == written.sha256
    assert header["settings_digest"] == queue.settings.contract.digest()
    assert int(header["epoch"]) == queue.look().gate.epoch
    assert header["drain_state"] == "drain"

    containers = {line["name"]: dict(line["members"]) for line in body if line["kind"] == "container"}
    jobs = {line["id"]: line for line in body if line["kind"] == "job"}
    states = [line["job"]["state"] for line in jobs.values()]
    counted = {state: states.count(state) for state in set(states)}
    assert counted == {"ready": 224, "running": 2, "delayed": 1, "unknown": 1}
    of_state = {
        "ready": "queue:enqueued",
        "running": "queue:leases",
        "delayed": "queue:delayed",
        "unknown": "queue:unknown",
    }
    for state, name in of_state.items():
        assert set(containers[name]) == {one for one, line in jobs.items() if line["job"]["state"] == state}
    assert set(containers["queue:deadlines"]) == {
        one for one, line in jobs.items() if line["job"]["state"] != "unknown"
    }
    for line in jobs.values():
        assert line["decision"]["job_id"] == line["id"]
        assert line["decision"]["accepted"] == "1"
        assert line["payload"] == "{}"
    unknown = next(line for line in jobs.values() if line["job"]["state"] == "unknown")
    assert unknown["ledger"]["job"] == unknown["id"]
    assert int(unknown["ledger"]["intent"]) > 0
    refusals = [line for line in body if line["kind"] == "refusal"]
    assert len(refusals) == 120
    assert {line["decision"]["reason"] for line in refusals} == {"admission_closed"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_what_moves_while_it_is_read_is_read_again(queue: Queue, tmp_path: Path) -> None:
    store = MovingStore(queue, moves=3)
    path = tmp_path / "snapshot.json"
    write_snapshot(store, path)
    body = lines_of(path)
    leases = next(dict(line["members"]) for line in body if line.get("name") == "queue:leases")
    jobs = {line["id"]: line["job"]["state"] for line in body if line["kind"] == "job"}
    assert store.moved == 3
    assert set(leases) == {one for one, state in jobs.items() if state == "running"}
    assert len(leases) == 2 + 3


def test_jobs_that_never_stand_still_give_no_snapshot(queue: Queue, tmp_path: Path) -> None:
    with pytest.raises(NeverStill, match="jobs moved in each of 10 looks"):
        write_snapshot(MovingStore(queue, moves=1000), tmp_path / "snapshot.json")
    assert os.listdir(tmp_path) == []


class MovingStore(Store):
    """Be a store whose queue moves one job after each look at the ids, as a worker that still runs would."""

    def __init__(self, queue: Queue, moves: int) -> None:
        super().__init__(queue.client, "default")
        self._queue = queue
        self._left = moves
        self.moved = 0
        queue.store.order("open_end_run", "ada", "the jobs have to move")

    def snapshot_ids(self) -> Any:
        ids = super().snapshot_ids()
        if self._left:
            self._left -= 1
            self.moved += len(self._queue.store.claim("w2", f"move-{self._left}", 1).jobs)
        return ids


def test_a_write_that_fails_leaves_neither_a_half_file_nor_the_older_one_changed(queue: Queue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text("the older one", encoding="utf-8")
    # What a process that was killed while it wrote has left is in nobody's way.
    (tmp_path / ".snapshot.json.partial").write_text("half a li", encoding="utf-8")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_snapshot(queue.store, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text(encoding="utf-8") == "the older one"
    assert os.listdir(tmp_path) == [path.name]

    write_snapshot(queue.store, path)
    assert lines_of(path)[-1]["kind"] == "end"


def test_a_reader_sees_no_file_before_it_is_whole(queue: Queue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    done = threading.Event()
    seen: list[bool] = []

    def watch() -> None:
        while not done.is_set():
            if path.exists():
                seen.append(lines_of(path)[-1]["kind"] == "end")

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        write_snapshot(queue.store, path)
    done.set()
    watcher.join()
    assert seen
    assert all(seen)
