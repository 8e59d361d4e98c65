"""A snapshot: whole, of one instant, read in small calls, and never half there."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import stat
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from gzip import GzipFile
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import NeverStill, NoContract, SnapshotBusy
from sluicegate.functions import function_name
from sluicegate.job import Outcome
from sluicegate.snapshot import write_snapshot
from sluicegate.snapshot_calls import IdAndScore, Row
from sluicegate.snapshot_file import SnapshotWriter
from sluicegate.snapshot_reading import SnapshotReader
from sluicegate.snapshot_records import JobLine, Place
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.kept import fill, jobs_of, lines_of
from tests.queues import OpenQueue, OpenQueueFunction


@pytest.fixture
def kept(open_queue: OpenQueueFunction) -> OpenQueue:
    """Return a queue in drain that holds something of every kind."""
    queue = open_queue(max_running=50, classes={"test-patch": {"deadline_s": 600, "effects": "unsafe"}})
    fill(queue)
    return queue


def test_it_holds_all_that_is_not_final_with_decisions_ledger_and_checksum(kept: OpenQueue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.jsonl.gz"

    written = write_snapshot(kept.store, path)

    header, *body, end = lines_of(path)
    with GzipFile(path) as file:
        raw = file.readlines()
    assert hashlib.sha256(b"".join(raw[:-1])).hexdigest() == written.sha256 == end["sha256"]
    assert (end["jobs"], end["refusals"], end["still"]) == (229, 121, True) == written_counts(written)
    assert header["settings_digest"] == kept.contract.digest()
    assert json.loads(header["contract"]) == json.loads(kept.contract.for_redis())
    assert int(header["epoch"]) == kept.store.observe().gate.epoch
    assert (header["format"], header["drain_state"], header["pin"]) == (3, "drain", "operator")
    jobs = jobs_of(path)
    assert header["records"] == "v2"
    states = [line["record"]["state"] for line in jobs.values()]
    assert {state: states.count(state) for state in set(states)} == {
        "ready": 224,
        "running": 2,
        "delayed": 1,
        "unknown": 1,
        "blocked": 1,
    }
    of_state = {"ready": "fifo:test-patch:-", "running": "leases", "delayed": "delayed", "unknown": "unknown"}
    for state, name in of_state.items():
        scores = dict(kept.client.zrange(f"queue:{name}", 0, -1, withscores=True))
        assert scores == {one: float(line["score"]) for one, line in jobs.items() if line["record"]["state"] == state}
    for job_id, line in jobs.items():
        assert line["record"] == kept.client.hgetall(f"job:{job_id}")
        assert line["payload"] == kept.client.get(f"payload:{job_id}")
    (unknown,) = [line["record"] for line in jobs.values() if line["record"]["state"] == "unknown"]
    assert unknown["intent_fence"] == unknown["fence"]
    refusals = {line["key"]: line["decision"]["reason"] for line in body if line["kind"] == "refusal"}
    assert refusals.pop("f1") == "unknown_class"
    assert set(refusals.values()) == {"admission_closed"}


def written_counts(written: Any) -> tuple[int, int, bool]:
    return written.jobs, written.refusals, written.still


def test_only_its_owner_can_read_it_and_nothing_else_is_left(kept: OpenQueue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.jsonl.gz"
    write_snapshot(kept.store, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [path.name]


class SpyingStore(Store):
    """Be a store that notes how much each call gave, and lets a test act after each."""

    def __init__(self, queue: OpenQueue) -> None:
        super().__init__(queue.client, "default")
        self.ids: list[int] = []
        self.rows: list[int] = []
        self.versions: list[int] = []
        self.calls = 0

    def between(self) -> None:
        self.calls += 1

    def snapshot_ids(self, container: str) -> Iterator[list[IdAndScore]]:
        for ids in super().snapshot_ids(container):
            self.ids.append(len(ids))
            yield ids

    def snapshot_rows(self, container: str) -> Iterator[list[Row]]:
        for rows in super().snapshot_rows(container):
            self.rows.append(len(rows))
            self.between()
            yield rows

    def snapshot_versions(self, container: str) -> Iterator[list[Place]]:
        for rows in super().snapshot_versions(container):
            self.versions.append(len(rows))
            self.between()
            yield rows


class WorkingStore(SpyingStore):
    """Be a store at whose queue a worker claims a job, and settles it, between two calls, `moves` times."""

    def __init__(self, queue: OpenQueue, moves: int, *, every: int = 1) -> None:
        super().__init__(queue)
        self._queue = queue
        self._left = moves
        self._every = every
        self.succeeded: list[str] = []
        self.running: list[str] = []
        queue.store.order("open", "ada", "the jobs have to move")

    def between(self) -> None:
        super().between()
        if not self._left or self.calls % self._every:
            return
        self._left -= 1
        job = self._queue.claimed("w2")
        if self._left % 2:
            self._queue.settle(job, Outcome.SUCCEEDED, worker="w2")
            self.succeeded.append(job.job_id)
        else:
            self.running.append(job.job_id)


def test_what_moves_while_it_is_read_is_read_again_and_is_of_one_instant(kept: OpenQueue, tmp_path: Path) -> None:
    store = WorkingStore(kept, moves=9)
    path = tmp_path / "snapshot.jsonl.gz"

    written = write_snapshot(store, path)

    jobs = jobs_of(path)
    assert written.still
    assert written.jobs == len(jobs) == 229 - len(store.succeeded)
    assert len(store.succeeded) == 4
    assert not set(store.succeeded) & set(jobs)
    assert {jobs[job_id]["record"]["state"] for job_id in store.running} == {"running"}
    for job_id, line in jobs.items():
        assert line["record"] == kept.client.hgetall(f"job:{job_id}")


def test_jobs_that_never_stand_still_give_no_snapshot(kept: OpenQueue, tmp_path: Path) -> None:
    with pytest.raises(NeverStill, match=r"jobs moved in each of 10 looks, \d+ of them in the last"):
        write_snapshot(WorkingStore(kept, moves=100, every=2), tmp_path / "snapshot.jsonl.gz")
    assert os.listdir(tmp_path) == []


def test_moving_jobs_can_be_taken_and_the_file_says_so_and_holds_none_twice(kept: OpenQueue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.jsonl.gz"
    store = WorkingStore(kept, moves=100, every=2)
    written = write_snapshot(store, path, moving=True)
    assert not written.still
    assert written.until_ms > written.at_ms
    corrected = [line["id"] for line in lines_of(path) if line["kind"] == "correction"]
    plain = [line["id"] for line in lines_of(path) if line["kind"] == "job" and line["id"] not in corrected]
    assert len(corrected) == len(set(corrected))
    assert len(plain) == len(set(plain))
    assert written.jobs == len(jobs_of(path))
    # Whatever was open all the time is there.
    assert set(jobs_of(path)) >= set(kept.store.list_jobs("ready", 1000))


def test_of_jobs_that_move_all_the_time_and_never_end_none_is_missing(
    open_queue: OpenQueueFunction, tmp_path: Path
) -> None:
    queue = open_queue(max_running=500, max_pending=5000, retry_budget=1000)
    ids = {queue.accepted("test-patch") for _ in range(300)}
    over = threading.Event()

    def move(worker: str) -> None:
        store, number = Store.connect(queue.url), 0
        while not over.is_set():
            number += 1
            held = store.claim(worker, f"r{number}", 20).jobs
            settlements = [
                {"id": job.job_id, "fence": str(job.fence), "request": f"{worker}/{job.fence}", "outcome": "requeued"}
                for job in held
            ]
            if settlements:
                store.settle_many(worker, [{**one, "worker": worker} for one in settlements])
        store.close()

    movers = [threading.Thread(target=move, args=(f"w{number}",)) for number in range(2)]
    for mover in movers:
        mover.start()
    try:
        for number in range(2):
            path = tmp_path / f"{number}.jsonl.gz"
            written = write_snapshot(queue.store, path, moving=True)
            assert (written.left_out, set(jobs_of(path)) ^ ids) == ((), set())
    finally:
        over.set()
        for mover in movers:
            mover.join()


def test_a_job_that_each_look_finds_where_it_has_just_gone_from_is_there(
    open_queue: OpenQueueFunction, tmp_path: Path
) -> None:
    """It runs while the ready are looked at, and is ready again before the running are."""

    class Crossing(Store):
        looks = 0

        def snapshot_ids(self, container: str) -> Iterator[list[IdAndScore]]:
            if container == "queue:fifo:lint-fix:-" and self.looks < 4:
                self.looks += 1
                job = queue.claimed()
                yield from super().snapshot_ids(container)
                queue.settle(job, Outcome.REQUEUED)
                return
            yield from super().snapshot_ids(container)

    queue = open_queue(retry_budget=1000)
    job_id = queue.accepted("lint-fix")
    path = tmp_path / "snapshot.jsonl.gz"
    store = Crossing(queue.client, "default")
    written = write_snapshot(store, path)
    assert (store.looks, written.still, written.jobs, set(jobs_of(path))) == (4, True, 1, {job_id})
    store.looks = -10
    with pytest.raises(NeverStill, match="in each of 10 looks, 1 of them in the last"):
        write_snapshot(store, path)


def test_a_job_that_moves_between_the_look_at_its_record_and_that_at_its_place_is_there(queue: OpenQueue) -> None:
    class Claiming(Store):
        claimed = False

        def _scores_asked(self, rows: Sequence[Row]) -> bytes:
            if not self.claimed:
                self.claimed = True
                assert queue.claimed("w1").job_id == job_id
            return super()._scores_asked(rows)

    job_id = queue.accepted()
    (((line, version),),) = Claiming(queue.client, "default").snapshot_jobs([job_id])
    assert (line.record["state"], version.split(":")[0]) == ("running", "running")
    assert float(line.score) == queue.client.zscore("queue:leases", job_id)


def test_a_canary_is_neither_met_nor_counted(open_queue: OpenQueueFunction) -> None:
    """One that starts during a look would make up for a job that was not met in it."""
    queue = open_queue(checked=False)
    queue.accepted()
    job = queue.claimed()
    assert queue.store.snapshot_head()["containers"]["queue:leases"] == 1
    queue.client.hset(f"job:{job.job_id}", "canary", "run")
    queue.client.zadd("running:canary", {job.job_id: 1})
    assert queue.store.snapshot_head()["containers"]["queue:leases"] == 0
    assert list(queue.store.snapshot_versions("queue:leases")) == [[]]


def test_an_open_job_that_its_container_lacks_has_no_place(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False)
    job_id = queue.accepted()
    queue.client.zrem("queue:fifo:lint-fix:-", job_id)
    (((line, _),),) = queue.store.snapshot_jobs([job_id])
    assert (line.record["state"], line.score) == ("ready", "")


def test_a_renewed_lease_is_no_move(kept: OpenQueue, tmp_path: Path) -> None:
    class Renewing(SpyingStore):
        def between(self) -> None:
            held = {one: int(kept.record(one)["fence"]) for one in kept.store.list_jobs("running")}
            assert kept.store.renew("w1", held).lost == ()

    assert write_snapshot(Renewing(kept), tmp_path / "snapshot.jsonl.gz").still


def test_an_intent_that_is_recorded_meanwhile_is_one(kept: OpenQueue, tmp_path: Path) -> None:
    kept.store.order("open", "ada", "the intent has to be recorded")
    job = kept.claimed("w3")

    class Intending(SpyingStore):
        def between(self) -> None:
            self.calls += 1
            if len(self.versions) == 0 and sum(self.rows) == 229:
                assert kept.store.intent("w3", job.job_id, job.fence) == "go"

    path = tmp_path / "snapshot.jsonl.gz"
    write_snapshot(Intending(kept), path)
    assert jobs_of(path)[job.job_id]["record"]["intent_fence"] == str(job.fence)


def test_no_more_than_500_ids_100_records_or_250_versions_are_asked_for_at_once(
    open_queue: OpenQueueFunction, tmp_path: Path
) -> None:
    queue = open_queue(max_pending=5000)
    # Many of one millisecond: a range that only knew scores would never get past them.
    for start in range(0, 1200, 100):
        queue.producer.submit_many(Submission(f"j{start + n}", "lint-fix", "{}") for n in range(100))
    store = SpyingStore(queue)
    written = write_snapshot(store, tmp_path / "snapshot.jsonl.gz")
    assert written.jobs == 1200
    assert (max(store.ids), max(store.rows), max(store.versions)) == (500, 100, 250)


def test_large_payloads_make_fewer_be_asked_for(queue: OpenQueue, tmp_path: Path) -> None:
    for number in range(15):
        queue.accepted(payload=json.dumps({"n": number, "text": "x" * 100_000}))
    store = SpyingStore(queue)
    path = tmp_path / "snapshot.jsonl.gz"
    assert write_snapshot(store, path).jobs == 15
    # The first are asked for before their size is known, and the second before the first have come.
    assert store.rows == [10, 5]
    assert {json.loads(line["payload"])["n"] for line in jobs_of(path).values()} == set(range(15))


def test_a_write_that_fails_leaves_neither_a_half_file_nor_the_older_one_changed(
    kept: OpenQueue, tmp_path: Path
) -> None:
    path = tmp_path / "snapshot.jsonl.gz"
    path.write_text("the older one", encoding="utf-8")
    # What a process that was killed while it wrote has left is in nobody's way.
    (tmp_path / ".snapshot.jsonl.gz.partial").write_text("half a li", encoding="utf-8")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_snapshot(kept.store, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text(encoding="utf-8") == "the older one"
    assert os.listdir(tmp_path) == [path.name]

    write_snapshot(kept.store, path)
    assert lines_of(path)[-1]["kind"] == "end"


def test_a_folder_that_is_not_there_is_not_made(kept: OpenQueue, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_snapshot(kept.store, tmp_path / "deep" / "snapshot.jsonl.gz")
    assert os.listdir(tmp_path) == []


def test_two_writers_of_one_name_are_kept_apart(kept: OpenQueue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.jsonl.gz"
    with SnapshotWriter(path) as first:
        with pytest.raises(SnapshotBusy, match="Another process is writing the snapshot"):
            write_snapshot(kept.store, path)
        first.finish({})
    assert lines_of(path)[0]["kind"] == "end"


def test_a_writer_that_has_opened_what_the_one_before_puts_in_place_takes_a_file_of_its_own(
    kept: OpenQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot.jsonl.gz"
    with ExitStack() as stack:
        first = stack.enter_context(SnapshotWriter(path))
        lock = fcntl.flock

        def lock_late(descriptor: int, operation: int) -> None:
            monkeypatch.undo()
            first.finish({})
            lock(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", lock_late)
        second = stack.enter_context(SnapshotWriter(path))
        assert lines_of(path)[-1]["kind"] == "end"
        second.finish({"jobs": 7})
    assert lines_of(path)[-1]["jobs"] == 7
    assert os.listdir(tmp_path) == [path.name]


def test_a_reader_sees_no_file_before_it_is_whole(kept: OpenQueue, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.jsonl.gz"
    done = threading.Event()
    seen: list[bool] = []

    def watch() -> None:
        while not done.is_set():
            if path.exists():
                seen.append(lines_of(path)[-1]["kind"] == "end")

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(3):
        write_snapshot(kept.store, path)
    done.set()
    watcher.join()
    assert seen
    assert all(seen)


def test_memory_grows_neither_with_the_queue_nor_with_the_file(open_queue: OpenQueueFunction, tmp_path: Path) -> None:
    queue = open_queue(max_pending=5000)
    path = tmp_path / "snapshot.jsonl.gz"
    payload = json.dumps({"text": "x" * 2000})

    def peaks(first: int, last: int) -> tuple[int, int]:
        """Give the bytes at the peak of a snapshot, and of checking its file, with `last` jobs in the queue."""
        for start in range(first, last, 100):
            queue.producer.submit_many(Submission(f"j{n}", "lint-fix", payload) for n in range(start, start + 100))
        tracemalloc.start()
        try:
            assert write_snapshot(queue.store, path).jobs == last
            written = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            with SnapshotReader(path) as reader:
                assert sum(map(len, reader.rows())) == last
            return written, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peaks(0, 400), peaks(400, 1600)
    assert many[0] < 1.5 * few[0]
    assert many[1] < 1.5 * few[1]


def test_the_first_job_of_a_class_that_comes_meanwhile_is_there(queue: OpenQueue, tmp_path: Path) -> None:
    class Admitting(SpyingStore):
        def between(self) -> None:
            super().between()
            if self.calls == 1:
                queue.accepted("browse", job_id="first-of-its-class")

    queue.accepted(job_id="before")
    path = tmp_path / "snapshot.jsonl.gz"
    written = write_snapshot(Admitting(queue), path)
    assert (written.still, set(jobs_of(path))) == (True, {"before", "first-of-its-class"})


def test_records_read_again_are_no_larger_calls(queue: OpenQueue) -> None:
    ids = [queue.accepted(payload=json.dumps({"n": number, "text": "x" * 100_000})) for number in range(12)]
    assert [row["id"] for row in queue.store.records([*ids, "gone"])["jobs"]] == ids
    asked = ("control:gate", "", "0", json.dumps({"ids": ids}))
    answer = queue.client.execute_command("FCALL", function_name("records"), 1, *asked)
    assert len(json.loads(answer)["jobs"]) == json.loads(answer)["looked"] == 3


def test_a_refusal_that_an_earlier_contract_keeps_for_longer_is_there(kept: OpenQueue, tmp_path: Path) -> None:
    short = kept.contract.model_copy(
        update={"timings": kept.contract.timings.model_copy(update={"refusal_retention_s": 0.5})}
    )
    kept.store.apply_settings(short.for_redis(), short.digest(), "ada", "kept for too long")
    path = tmp_path / "snapshot.jsonl.gz"
    assert write_snapshot(kept.store, path).refusals == 121
    kept.store.apply_settings(kept.contract.for_redis(), kept.contract.digest(), "ada", "as before")


def test_of_a_queue_without_a_contract_there_is_no_file(kept: OpenQueue, tmp_path: Path) -> None:
    never = Store.connect(kept.url, "never-opened")
    with pytest.raises(NoContract, match="Queue never-opened has no contract"):
        write_snapshot(never, tmp_path / "snapshot.jsonl.gz")
    never.close()
    contract = kept.client.hgetall("queue:settings")
    kept.client.delete("queue:settings")
    with pytest.raises(NoContract):
        write_snapshot(kept.store, tmp_path / "snapshot.jsonl.gz")
    assert os.listdir(tmp_path) == []
    kept.client.hset("queue:settings", mapping=contract)


def test_what_is_no_plain_file_is_neither_replaced_nor_followed(kept: OpenQueue, tmp_path: Path) -> None:
    device, folder, partial = tmp_path / "device", tmp_path / "folder", tmp_path / ".s.partial"
    os.mkfifo(device)
    folder.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    partial.symlink_to(precious)
    for path in (device, folder):
        with pytest.raises(FileExistsError, match="no plain file"):
            write_snapshot(kept.store, path)
    with pytest.raises(OSError, match="symbolic links"):
        write_snapshot(kept.store, tmp_path / "s")
    assert (device.is_fifo(), precious.read_text(encoding="utf-8")) == (True, "kept")


@pytest.mark.parametrize(
    ("job_id", "field", "value"),
    [
        ("r3", "deadline", "soon"),
        ("r3", "class", ""),
        ("r3", "admitted_at", "1.5"),
        ("delayed", "ready_at", None),
        ("unknown", "attempt", "-1"),
        # What is no text can't be written down.
        ("r3", "fp", b"\xff"),
        ("r3", "note", b"\xff"),
        ("r3", "class", b"\xfftest-patch"),
        ("r3", "rev", b"\xff"),
        ("r3", "state", b"\xff"),
        ("running", "intent_fence", b"\xff"),
    ],
)
def test_a_record_that_no_restore_would_take_is_left_out_and_named(
    open_queue: OpenQueueFunction, tmp_path: Path, job_id: str, field: str, value: str | bytes | None
) -> None:
    queue = open_queue(checked=False, max_running=50, classes={"test-patch": {"deadline_s": 600, "effects": "unsafe"}})
    started = fill(queue, ready=9)
    job_id = started[job_id].job_id if job_id in started else job_id
    if value is None:
        queue.client.hdel(f"job:{job_id}", field)
    else:
        queue.client.hset(f"job:{job_id}", field, value)
    path = tmp_path / "s.jsonl.gz"
    written = write_snapshot(queue.store, path)
    assert (written.left_out, written.still) == ((job_id,), True)
    with SnapshotReader(path) as reader:
        ids = {row.id for rows in reader.rows() for row in rows if isinstance(row, JobLine)}
        assert reader.content.counts.total == written.jobs == len(ids)
    assert job_id not in ids


def test_a_payload_that_is_no_text_costs_no_other_job_its_place(kept: OpenQueue, tmp_path: Path) -> None:
    kept.client.set("payload:r7", b"\x82\xa1n\xff")
    path = tmp_path / "s.jsonl.gz"
    written = write_snapshot(kept.store, path)
    assert (written.left_out, written.jobs, written.still) == (("r7",), 228, True)
    assert len(jobs_of(path)) == 228


@pytest.mark.parametrize(("field", "spoilt"), [("deadline", "soon"), ("fp", b"\xff"), ("class", b"\xff")])
def test_a_record_that_is_mended_or_damaged_while_it_is_read_is_as_it_was_last(
    kept: OpenQueue, tmp_path: Path, field: str, spoilt: str | bytes
) -> None:
    mended, damaged = kept.client.hget("job:r7", field), kept.client.hget("job:r8", field)

    class MovingStore(SpyingStore):
        def snapshot_versions(self, container: str) -> Iterator[list[Place]]:
            if not self.versions:
                kept.client.hset("job:r7", mapping={field: mended, "rev": "2"})
                kept.client.hset("job:r8", mapping={field: spoilt, "rev": "2"})
            yield from super().snapshot_versions(container)

    store, path = MovingStore(kept), tmp_path / "s.jsonl.gz"
    kept.client.hset("job:r7", field, spoilt)
    written = write_snapshot(store, path)
    assert (written.left_out, written.still) == (("r8",), True)
    with SnapshotReader(path) as reader:
        ids = [row.id for rows in reader.rows() for row in rows if isinstance(row, JobLine)]
    assert len(ids) == len(set(ids)) == written.jobs
    assert ("r7" in ids, "r8" in ids) == (True, False)
    kept.client.hset("job:r8", field, damaged)


@pytest.mark.parametrize(("field", "spoilt"), [("retry_at", "soon"), ("fp", b"\xff"), ("reason", b"closed\xff")])
def test_a_refusal_that_no_restore_would_take_is_left_out_and_named(
    kept: OpenQueue, tmp_path: Path, field: str, spoilt: str | bytes
) -> None:
    whole = kept.client.hget("job:k-closed-3", field)
    kept.client.hset("job:k-closed-3", field, spoilt)
    path = tmp_path / "s.jsonl.gz"
    written = write_snapshot(kept.store, path)
    assert written.left_out == ("k-closed-3",)
    with SnapshotReader(path) as reader:
        assert reader.content.counts.refusals == written.refusals
    kept.client.hset("job:k-closed-3", field, whole)


def test_of_a_queue_whose_contract_was_damaged_there_is_no_file(kept: OpenQueue, tmp_path: Path) -> None:
    contract = kept.client.hget("queue:settings", "contract")
    kept.client.hset("queue:settings", "contract", "{}")
    with pytest.raises(NoContract, match=r"damaged by hand, so no snapshot .* holds a contract without classes"):
        write_snapshot(kept.store, tmp_path / "s.jsonl.gz")
    kept.client.hset("queue:settings", "contract", contract)
    assert os.listdir(tmp_path) == []
