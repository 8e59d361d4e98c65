"""Restoring: onto a server without the queue, beside a live one, whole or not at all, and complete after a kill."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from sluicegate.calls import Words
from sluicegate.errors import SnapshotRefused, StoreUnavailable
from sluicegate.job import Job, Outcome
from sluicegate.reconcile import Reconciled, by_ledger
from sluicegate.restore import Restored, Wish, restore
from sluicegate.restore_sentences import refused_said
from sluicegate.snapshot import write_snapshot
from sluicegate.snapshot_file import LineKind, SnapshotWriter
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.kept import Line, everything, fill, jobs_of, lines_of, write_lines
from tests.queues import OpenQueue, OpenQueueFunction, wait_until

LONG = {"test-patch": {"deadline_s": 600, "effects": "unsafe"}}


@pytest.fixture
def kept(open_queue: OpenQueueFunction) -> OpenQueue:
    """Return a queue for a snapshot; its own gate and records may go."""
    return open_queue(max_running=50, classes=LONG)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.jsonl.gz"


@pytest.fixture
def fresh(kept: OpenQueue) -> Iterator[Callable[[], Store]]:
    """Return a function that empties the server and gives a client that has seen nothing of the queue."""
    stores: list[Store] = []

    def emptied() -> Store:
        kept.client.flushall()
        stores.append(Store.connect(kept.url, timeout_s=5))
        return stores[-1]

    yield emptied
    for store in stores:
        store.close()


def put_back(store: Store, path: Path, **changes: bool) -> Restored:
    return restore(store, Wish(path, "bob", "the host was lost", **changes))


def test_a_clean_server_comes_up_drained_closed_and_pinned_with_all_that_was_open(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    fill(kept)
    write_snapshot(kept.store, path)
    before = {one: kept.record(one) for one in jobs_of(path)}
    epoch = kept.store.observe().gate.epoch
    store = fresh()

    result = put_back(store, path)

    assert (result.answer, result.jobs) == ("clean", 229)
    assert dict(result.counts) == {"ready": 224, "delayed": 1, "unknown": 3, "blocked": 1, "refusal": 121}
    look = store.observe()
    assert (look.gate.drain_state, look.gate.pin, look.gate.raw_admission) == ("drain", "restored", "closed")
    assert look.gate.epoch > epoch
    assert (look.ready, look.delayed, look.running, look.unknown, look.blocked) == (224, 1, 0, 3, 1)
    assert look.settings_digest == kept.contract.digest()
    assert look.counters["restored"] == 229
    for job_id, was in before.items():
        now = kept.record(job_id)
        assert now["state"] == ("unknown" if was["state"] == "running" else was["state"])
        assert int(now["fence"]) > int(was["fence"])
        assert int(now["fence"]) >= result.header.at_ms * 1000
        assert {name: now[name] for name in ("key", "class", "deadline", "attempt", "retries")} == {
            name: was[name] for name in ("key", "class", "deadline", "attempt", "retries")
        }
    done, begun = store.gate_log(2)
    assert (begun.reason, begun.actor, done.reason) == ("restore_begun", "bob", "restored")
    assert "229 jobs (3 unknown) and 121 refusals" in done.note


def test_keys_keep_their_ids_and_refusals_their_answers(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    fill(kept)
    write_snapshot(kept.store, path)
    put_back(fresh(), path)

    again = kept.submit("test-patch", payload='{"n":7}', idempotency_key="r7")
    assert (again.accepted, again.job_id, again.replayed) == (True, "r7", True)
    assert kept.submit("test-patch", payload="{}", idempotency_key="r7").reason == "conflict"
    final = kept.submit("no-such-class", idempotency_key="f1")
    assert (final.reason, final.job_id, final.retry_after_s, final.replayed) == ("unknown_class", "f1", None, True)
    closed = kept.submit(idempotency_key="k-closed-3")
    assert (closed.reason, closed.replayed) == ("admission_closed", True)


@pytest.mark.parametrize("named", [True, False])
def test_a_refusal_goes_when_it_was_to_go_whatever_contract_came_later(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store], named: bool
) -> None:
    """A file of before does not name the end; then the contract in force gives it."""
    assert kept.submit("no-such-class", idempotency_key="f1").reason == "unknown_class"
    was_ms = kept.client.pexpiretime("job:f1")
    timings = kept.contract.timings
    longer = timings.model_copy(update={"refusal_retention_s": 2 * timings.refusal_retention_s})
    contract = kept.contract.model_copy(update={"timings": longer})
    kept.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "a test")
    write_snapshot(kept.store, path)
    if not named:
        lines = [{name: value for name, value in line.items() if name != "ends_at"} for line in lines_of(path)]
        with SnapshotWriter(path) as writer:
            for line in lines[:-1]:
                writer.write(LineKind(line.pop("kind")), line)
            writer.finish(lines[-1])
    put_back(fresh(), path)

    later_ms = kept.client.pexpiretime("job:f1") - was_ms
    expected_ms = 0 if named else timings.refusal_retention_s * 1000
    assert abs(later_ms - expected_ms) < 1000
    assert kept.client.zscore("queue:refusals", "f1") == pytest.approx(was_ms + expected_ms, abs=1000)


def test_pending_work_resumes_when_a_person_opens_and_a_late_worker_is_refused(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    started = fill(kept)
    write_snapshot(kept.store, path)
    put_back(fresh(), path)

    assert kept.claim().jobs == ()
    late = started["running"]
    assert kept.settle(late, Outcome.SUCCEEDED).answer == "stale"
    # It ran once, under its old fence: that is no duplicate.
    assert kept.store.observe().gate.duplicates_unacknowledged == 0
    kept.store.order("open", "ada", "looked at what is unknown")
    jobs = kept.claim(50).jobs
    assert len(jobs) == 50
    assert kept.settle(jobs[0], Outcome.SUCCEEDED).answer == "ok"


def test_what_a_snapshot_can_not_know_is_not_repeated_by_the_ledger(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    """Without an intent in the ledger a job may have made its call after the snapshot."""
    job = fill(kept)["no-intent"]
    write_snapshot(kept.store, path)
    store = fresh()
    put_back(store, path)
    assert "intent" not in (store.job(job.job_id) or {})["ledger"]
    assert by_ledger(store, job.job_id) == Reconciled("moved", "blocked")


def test_a_snapshot_of_the_restored_queue_holds_the_same(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    fill(kept)
    write_snapshot(kept.store, path)
    store = fresh()
    put_back(store, path)
    second = path.with_name("second.jsonl.gz")
    written = write_snapshot(store, second)
    assert (written.jobs, written.refusals) == (229, 121)
    first, again = jobs_of(path), jobs_of(second)
    assert first.keys() == again.keys()
    assert all(first[one]["payload"] == again[one]["payload"] for one in first)
    anew = {"state", "rev", "fence", "worker", "cause"}
    for one, line in first.items():
        before, after = set(line["record"].items()), set(again[one]["record"].items())
        assert {name for name, _ in before - after} <= anew
        assert {name for name, _ in after - before} - anew == {"restored_fence", "restored_state", "restored_at"}


def test_pending_unsafe_jobs_can_come_back_unknown(kept: OpenQueue, path: Path, fresh: Callable[[], Store]) -> None:
    fill(kept, ready=9)
    kept.store.order("open", "ada", "one job of another class")
    keyed = kept.accepted("lint-fix")
    write_snapshot(kept.store, path)
    store = fresh()
    result = put_back(store, path, suspect_unsafe=True)
    assert dict(result.counts)["unknown"] == 3 + 4
    assert (kept.state(keyed), store.observe().ready) == ("ready", 1)


def test_duplicates_the_kill_switch_and_the_endpoint_are_not_forgotten(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    kept.accepted()
    kept.store.confirm_duplicate("k1", actor="ada", note="two refunds")
    kept.store.kill_switch(on=True, actor="ada", reason="not today")
    write_snapshot(kept.store, path)
    store = fresh()
    put_back(store, path)
    assert store.observe().gate.duplicates_unacknowledged == 1
    assert kept.client.get("kill") == "ada: not today"


def test_a_live_queue_gets_what_is_not_there_and_nothing_of_it_is_touched(kept: OpenQueue, path: Path) -> None:
    old = [kept.accepted(idempotency_key=f"k{n}") for n in range(3)]
    done = kept.claimed()
    write_snapshot(kept.store, path)
    kept.settle(done, Outcome.SUCCEEDED)
    lost = old[2]
    _remove(kept, lost, "k2")
    new = kept.accepted(idempotency_key="k-new")
    before = {one: kept.record(one) for one in (old[0], old[1], new)}

    result = put_back(kept.store, path)

    assert (result.answer, result.jobs, result.counts["kept"]) == ("live", 1, 2)
    assert {one: kept.record(one) for one in before} == before
    assert kept.state(done.job_id) == "succeeded"
    assert kept.state(lost) == "ready"
    gate = kept.store.observe().gate
    assert (gate.drain_state, gate.pin) == ("drain", "restored")


def _remove(queue: OpenQueue, job_id: str, key: str) -> None:
    """Take a job out of every key, as a partial loss would."""
    for name in queue.client.scan_iter("queue:*"):
        if queue.client.type(name) == "zset":
            queue.client.zrem(name, job_id)
        elif queue.client.type(name) == "list":
            queue.client.lrem(name, 0, job_id)
    queue.client.delete(f"job:{job_id}", f"payload:{job_id}")


def test_the_same_restore_again_changes_no_job(kept: OpenQueue, path: Path, fresh: Callable[[], Store]) -> None:
    fill(kept)
    write_snapshot(kept.store, path)
    store = fresh()
    put_back(store, path)
    before = {one: kept.record(one) for one in jobs_of(path)}
    again = put_back(store, path)
    assert (again.answer, again.jobs, again.counts["kept"]) == ("live", 0, 229 + 121)
    assert {one: kept.record(one) for one in before} == before


def test_a_dry_run_says_the_same_and_writes_nothing(kept: OpenQueue, path: Path, fresh: Callable[[], Store]) -> None:
    fill(kept)
    write_snapshot(kept.store, path)
    live = everything(kept.client)
    assert put_back(kept.store, path, dry_run=True).counts == {"kept": 229 + 121}
    assert everything(kept.client) == live
    store = fresh()
    dry = put_back(store, path, dry_run=True)
    assert kept.client.dbsize() == 0
    assert dry.answer == "clean"
    assert put_back(store, path).counts == dry.counts


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda lines: lines[:-1], r"is cut off: its last line is missing"),
        (lambda lines: [*lines[:5], *lines[6:]], r"was altered: its checksum is another"),
        (
            lambda lines: [{**lines[0], "format": 2}, *lines[1:]],
            r"is of format 2, and this version reads format 3 only",
        ),
        (
            lambda lines: [{**lines[0], "records": "v1"}, *lines[1:]],
            r"holds records of layout 'v1', and this version puts back 'v2' only",
        ),
        (lambda lines: [{**lines[0], "contract": "{}"}, *lines[1:]], r"holds a contract without classes \(line 1\)"),
        (lambda lines: [{**lines[0], "contract": ""}, *lines[1:]], r"holds no contract"),
        (lambda lines: lines[1:], r"has a line `job` where none belongs \(line 1\)"),
        (lambda lines: [*lines, lines[1]], r"has a line `job` where none belongs"),
        (lambda lines: [lines[0], lines[-2], *lines[1:]], r"has a line `job` where none belongs \(line 3\)"),
        (lambda lines: [lines[0], {**lines[1], "record": {}}, *lines[2:]], r"in the state None \(line 2\)"),
        (lambda lines: [lines[0], _with(lines[1], "state", "succeeded"), *lines[2:]], r"in the state 'succeeded'"),
        (
            lambda lines: [lines[0], _with(lines[1], "deadline", "nan"), *lines[2:]],
            r"a deadline that is no whole number",
        ),
        (
            lambda lines: [*lines[:-2], {**lines[-2], "ends_at": "soon"}, lines[-1]],
            r"ends_at that is no whole number",
        ),
        (lambda lines: [*lines[:-2], _decided(lines[-2], "reason"), lines[-1]], r"holds a reason that is no text"),
        (lambda lines: [*lines[:-2], _decided(lines[-2], "fp"), lines[-1]], r"holds a fp that is no text"),
        (lambda lines: [lines[0], _without(lines[1], "fp"), *lines[2:]], r"holds a fp that is no text"),
        (lambda lines: [lines[0], _without(lines[1], "class"), *lines[2:]], r"without its class"),
        (lambda lines: [lines[0], _without(lines[1], "admitted_at"), *lines[2:]], r"holds a admitted_at that is no"),
        (lambda lines: [lines[0], _with(lines[1], "cost", ""), *lines[2:]], r"without its cost"),
        (lambda lines: [lines[0], _with(lines[1], "rev", "12345678901234567"), *lines[2:]], r"a rev that is no whole"),
        (lambda lines: [lines[0], _with(lines[1], "fence", "1\n"), *lines[2:]], r"a fence that is no whole number"),
        (lambda lines: [lines[0], _with(lines[1], "state", "delayed"), *lines[2:]], r"a ready_at that is no whole"),
        (lambda lines: [lines[0], _with(lines[1], "canary", "run"), *lines[2:]], r"holds the canary 'r\d+' of a run"),
        (
            lambda lines: [lines[0], _with_all(lines[1], dict.fromkeys(map(str, range(99)), "")), *lines[2:]],
            r"with 1\d\d fields \(line 2\)",
        ),
        (lambda lines: [lines[0], _with(lines[1], "odd", 7), *lines[2:]], r"a record that is no mapping of texts"),
        (lambda lines: [lines[0], _with(lines[1], "rev", None), *lines[2:]], r"a record that is no mapping of texts"),
        (lambda lines: [lines[0], {**lines[1], "payload": {}}, *lines[2:]], r"holds a payload that is no text"),
        (lambda lines: [lines[0], {**lines[1], "score": "nan"}, *lines[2:]], r"without its place"),
        (lambda lines: [lines[0], {**lines[1], "score": "1_0"}, *lines[2:]], r"without its place"),
        (lambda lines: [lines[0], {**lines[1], "score": "1e999"}, *lines[2:]], r"without its place"),
        (lambda lines: [lines[0], {**lines[1], "score": "-1e-400"}, *lines[2:]], r"without its place"),
        (lambda lines: [{**lines[0], "at_ms": 10**15}, *lines[1:]], r"an at_ms that no calendar has \(line 1\)"),
        (lambda lines: [{**lines[0], "at_ms": 10**400}, *lines[1:]], r"a at_ms that is no whole number"),
        (
            lambda lines: [{**lines[0], "duplicates": {"confirmed": 10**16, "acknowledged": 0}}, *lines[1:]],
            r"a confirmed that is no whole number",
        ),
        (lambda lines: [_declaring(lines[0], effects="maybe"), *lines[1:]], r"a class that is none \(line 1\)"),
        (lambda lines: [_declaring(lines[0], deadline_ms="9"), *lines[1:]], r"a class that is none \(line 1\)"),
        (lambda lines: [lines[0], {**lines[1], "record": None}, *lines[2:]], r"a record that is no mapping of texts"),
        (lambda lines: [lines[0], {**lines[1], "score": "x"}, *lines[2:]], r"without its place"),
        (lambda lines: [lines[0], {**lines[1], "id": ""}, *lines[2:]], r"holds a job ''"),
        (
            lambda lines: [lines[0], {"kind": "surprise"}, *lines[1:]],
            r"has a line that is none of a snapshot \(line 2\)",
        ),
        (lambda lines: [], r"is cut off: its last line is missing"),
    ],
)
def test_a_file_that_is_not_right_is_refused_whole(
    spoil: Callable[[list[Line]], list[Line]],
    said: str,
    kept: OpenQueue,
    path: Path,
    fresh: Callable[[], Store],
) -> None:
    fill(kept, ready=9)
    write_snapshot(kept.store, path)
    write_lines(path, spoil(lines_of(path)))
    store = fresh()
    with pytest.raises(SnapshotRefused, match=said):
        put_back(store, path)
    assert kept.client.dbsize() == 0


@pytest.mark.parametrize("beside", [0, 3])
def test_a_line_that_is_nested_too_deeply_is_refused_with_its_number(
    beside: int, kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    fill(kept, ready=9)
    write_snapshot(kept.store, path)
    with gzip.open(path) as file:
        lines = file.readlines()
    deep = b'{"kind":"job","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    path.write_bytes(gzip.compress(b"".join([*lines[: 1 + beside], deep, *lines[1 + beside :]])))
    with pytest.raises(SnapshotRefused, match=rf"none of a snapshot \(line {2 + beside}\)"):
        put_back(fresh(), path)


def _declaring(header: Line, **changes: str) -> Line:
    contract = json.loads(header["contract"])
    contract["classes"]["lint-fix"] |= changes
    return {**header, "contract": json.dumps(contract)}


def _decided(line: Line, without: str) -> Line:
    return {**line, "decision": {name: value for name, value in line["decision"].items() if name != without}}


def _with(line: Line, name: str, value: object) -> Line:
    return {**line, "record": {**line["record"], name: value}}


def _with_all(line: Line, fields: Mapping[str, str]) -> Line:
    return {**line, "record": {**line["record"], **fields}}


def _without(line: Line, name: str) -> Line:
    return {**line, "record": {field: value for field, value in line["record"].items() if field != name}}


def test_a_file_cut_off_or_altered_anywhere_is_refused_whole(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    fill(kept, ready=9)
    write_snapshot(kept.store, path)
    whole = path.read_bytes()
    store = fresh()
    for position in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:position])
        with pytest.raises(SnapshotRefused):
            put_back(store, path)
        altered = bytearray(whole)
        altered[position] ^= 0x10
        if _lines(bytes(altered)) == _lines(whole):
            continue  # a field of gzip's own header that no line depends on
        path.write_bytes(altered)
        with pytest.raises(SnapshotRefused):
            put_back(store, path)
    assert kept.client.dbsize() == 0


def _lines(raw: bytes) -> bytes | None:
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error):
        return None


def test_a_plain_file_or_none_is_refused(kept: OpenQueue, path: Path) -> None:
    with pytest.raises(SnapshotRefused, match="cannot be read: No such file"):
        put_back(kept.store, path)
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(SnapshotRefused, match="is no gzip file or was altered"):
        put_back(kept.store, path)
    path.write_bytes(gzip.compress(path.read_bytes())[:5])
    with pytest.raises(SnapshotRefused, match="is cut off"):
        put_back(kept.store, path)
    reading, writing = os.pipe()
    with pytest.raises(SnapshotRefused, match="is no gzip file or was altered: "):
        put_back(kept.store, Path(f"/proc/self/fd/{reading}"))
    os.close(reading)
    os.close(writing)


def test_a_live_run_an_old_file_and_an_undeclared_class_are_refused(
    kept: OpenQueue, open_queue: OpenQueueFunction, path: Path
) -> None:
    kept.accepted("browse")
    write_snapshot(kept.store, path)
    kept.store.open_run(
        {"runbook": "drain-and-recover", "trigger": "person", "run": "run1", "actor": "ada", "reason": "x"}
        | {"confirmed": True, "digest": "", "episode": ""}
    )
    assert (put_back(kept.store, path).answer, put_back(kept.store, path).why) == ("run_live", "run1")
    kept.store.order("abort", "ada", "x")
    kept.store.order("open_end_run", "ada", "x")
    narrow = kept.contract.model_copy(
        update={"classes": {name: one for name, one in kept.contract.classes.items() if name != "browse"}}
    )
    kept.store.apply_settings(narrow.for_redis(), narrow.digest(), "ada", "x")
    refused = put_back(kept.store, path)
    assert (refused.answer, refused.why) == ("undeclared", "browse")
    short = kept.contract.model_copy(
        update={"timings": kept.contract.timings.model_copy(update={"final_retention_s": 0.001})}
    )
    kept.store.apply_settings(short.for_redis(), short.digest(), "ada", "x")
    assert put_back(kept.store, path).answer == "too_old"
    assert kept.store.observe().gate.drain_state == "admit"
    kept.store.apply_settings(kept.contract.for_redis(), kept.contract.digest(), "ada", "x")


def test_a_restore_whose_file_grows_too_old_in_the_middle_is_given_up_as_it_says(
    kept: OpenQueue, path: Path, tmp_path: Path
) -> None:
    class Slow(Store):
        def restore(self, parts: Iterable[Words]) -> Iterator[tuple[str, Mapping[str, int]]]:
            wait_until(lambda: time.time() > forgotten_s, "the end of the retention")
            return super().restore(parts)

    short = kept.contract.model_copy(
        update={"timings": kept.contract.timings.model_copy(update={"final_retention_s": 3.0})}
    )
    kept.store.apply_settings(short.for_redis(), short.digest(), "ada", "x")
    kept.accepted()
    write_snapshot(kept.store, path)
    forgotten_s = time.time() + 3.1
    result = put_back(Slow(kept.client, "default"), path)
    assert (result.answer, result.why, result.done) == ("too_old", "begun", False)
    assert "restore that with --take-over" in refused_said("default", result).hint
    assert kept.store.order("open", "ada", "x").answer == "restoring"

    other = tmp_path / "other.jsonl.gz"
    assert write_snapshot(kept.store, other).half_restored
    assert put_back(kept.store, other, take_over=True).answer == "live"
    assert kept.store.order("open", "ada", "x").answer == "moved"


def test_a_restore_that_was_cut_off_is_completed_though_a_worker_has_seen_a_later_epoch(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    """As on a new server whose clock is behind that of the old one."""

    class CutOff(Store):
        def restore(self, parts: Iterable[Words]) -> Iterator[tuple[str, Mapping[str, int]]]:
            raise StoreUnavailable("nobody answers")

    kept.accepted()
    write_snapshot(kept.store, path)
    store = fresh()
    with pytest.raises(StoreUnavailable):
        put_back(CutOff(kept.client, "default"), path)
    later = store.observe().gate.epoch + 1_000_000
    kept.store._saw(later)

    assert kept.claim().jobs == ()

    refused = refused_said("default", put_back(store, path))
    assert "`sluicegate gate drain --as NAME --reason WHY`" in refused.hint
    assert store.order("open", "ada", "the wrong way").answer == "restoring"
    assert store.order("drain", "ada", "the clock is behind").epoch > later
    assert put_back(store, path).answer == "resumed"
    assert store.order("open", "ada", "all is back").answer == "moved"
    assert kept.claimed().job_id


def test_a_queue_that_lost_a_part_takes_no_restore(kept: OpenQueue, path: Path) -> None:
    kept.accepted()
    write_snapshot(kept.store, path)
    epoch = kept.client.get("control:epoch")
    kept.client.delete("control:gate")
    assert put_back(kept.store, path).answer == "unreadable"
    contract = kept.client.hgetall("queue:settings")
    kept.client.delete("control:epoch", "queue:settings")
    assert put_back(Store.connect(kept.url), path).answer == "not_empty"
    kept.client.hset("queue:settings", mapping=contract)
    kept.client.set("control:epoch", epoch)
    kept.store.order("drain", "ada", "whole again")


def kill_in_the_middle(kept: OpenQueue, path: Path, jobs: int) -> None:
    """Start a restore as a process of its own, and kill it in the middle (SIGKILL)."""
    who = ("--as", "bob", "--reason", "the host was lost")
    child = subprocess.Popen(
        [sys.executable, "-m", "sluicegate", "queue", "restore", str(path), "--redis-url", kept.url, *who],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: int(kept.client.hget("counters", "restored") or 0) >= 200, "200 jobs restored", 60)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    assert 200 <= int(kept.client.hget("counters", "restored")) < jobs


def test_a_restore_killed_in_the_middle_stays_closed_until_the_same_again_completes_it(
    open_queue: OpenQueueFunction, path: Path, tmp_path: Path
) -> None:
    kept = open_queue(max_pending=9000, classes=LONG)
    for start in range(0, 5000, 100):
        kept.producer.submit_many(Submission(f"j{n}", "test-patch", "{}") for n in range(start, start + 100))
    write_snapshot(kept.store, path)
    other = tmp_path / "other.jsonl.gz"
    write_snapshot(kept.store, other)
    kept.client.flushall()
    store = Store.connect(kept.url, timeout_s=5)

    kill_in_the_middle(kept, path, 5000)

    for order in ("open", "open_end_run", "reject", "release"):
        assert store.order(order, "ada", "it looks whole").answer == "restoring"
    run = {"runbook": "drain-and-recover", "trigger": "person", "run": "run1", "actor": "ada", "reason": "x"}
    answer = store.open_run(run | {"confirmed": True, "digest": "", "episode": ""})
    assert (answer.answer, answer.why) == ("refused", "a restore is not complete")
    assert store.claim("w1", "r1", 10).jobs == ()
    assert store.observe().gate.drain_state == "drain"
    assert put_back(store, other).answer == "other"

    result = put_back(store, path)

    assert result.answer == "resumed"
    assert result.jobs + result.counts["kept"] == 5000
    assert result.counts["kept"] >= 200
    assert store.observe().ready == 5000
    assert int(kept.client.hget("counters", "restored")) == 5000
    assert store.order("open", "ada", "complete now").answer == "moved"
    store.close()


def test_another_restore_can_take_over_by_name(kept: OpenQueue, path: Path, tmp_path: Path) -> None:
    kept.accepted(idempotency_key="k1")
    write_snapshot(kept.store, path)
    kept.client.hset("control:gate", "restoring", "0" * 64)
    kept.store.order("drain", "ada", "as a restore leaves it")
    assert put_back(kept.store, path).answer == "other"
    assert put_back(kept.store, path, take_over=True).answer == "live"
    assert kept.store.order("open", "ada", "complete").answer == "moved"


def test_a_part_after_another_has_taken_over_is_refused(kept: OpenQueue) -> None:
    assert list(kept.store.restore([("1" * 64, "0", "0", "")])) == [("not_restoring", {})]


def test_a_file_that_fails_between_two_parts_leaves_the_connection_in_step(kept: OpenQueue) -> None:
    def parts() -> Iterator[tuple[str, ...]]:
        yield ("1" * 64, "0", "0", "")
        raise SnapshotRefused("it was changed while it was read")

    with pytest.raises(SnapshotRefused):
        list(kept.store.restore(parts()))
    assert kept.store.observe().gate.readable


def test_a_named_queue_is_restored_under_its_own_name(kept: OpenQueue, path: Path) -> None:
    job: Job = kept.started()
    write_snapshot(kept.store, path)
    store = Store.connect(kept.url, "second")
    assert put_back(store, path).answer == "clean"
    record = store.job(job.job_id)
    assert record is not None
    assert record["job"]["state"] == "unknown"
    assert kept.state(job.job_id) == "running"
    store.close()


def test_a_refusal_given_since_gives_way_to_the_job_that_was_accepted_before(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    job_id = kept.accepted(idempotency_key="k1")
    write_snapshot(kept.store, path)
    store = fresh()
    assert store.init_queue(kept.contract.for_redis(), kept.contract.digest(), "bob", "too early").answer == "moved"
    store.order("reject", "bob", "what was there before?")
    assert kept.submit(idempotency_key="k1").reason == "admission_closed"
    assert put_back(store, path, dry_run=True).counts == {"ready": 1}
    assert kept.submit(idempotency_key="k1").reason == "admission_closed"
    assert put_back(store, path).counts == {"ready": 1}
    assert (kept.state(job_id), kept.client.zscore("queue:refusals", job_id)) == ("ready", None)
    again = kept.submit(idempotency_key="k1")
    assert (again.accepted, again.replayed) == (True, True)


def test_the_jobs_of_one_queue_are_not_mixed_into_another_that_lives(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    kept.accepted()
    write_snapshot(kept.store, path)
    fresh()
    other = Store.connect(kept.url, "second")
    other.init_queue(kept.contract.for_redis(), kept.contract.digest(), "bob", "another queue")
    before = other.observe().gate.epoch, kept.client.dbsize()
    refused = put_back(other, path)
    assert (refused.answer, refused.header.queue) == ("other_queue", "default")
    assert (other.observe().gate.epoch, kept.client.dbsize()) == before
    other.close()


def test_a_restore_under_another_name_that_was_cut_short_is_completed(
    kept: OpenQueue, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.accepted()
    write_snapshot(kept.store, path)
    second = Store.connect(kept.url, "second")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(second, "restore", dies)
        with pytest.raises(KeyboardInterrupt):
            put_back(second, path)
    resumed = put_back(second, path)
    assert (resumed.answer, resumed.jobs) == ("resumed", 1)
    second.close()


def test_a_restore_that_suspects_what_is_unsafe_is_completed_by_one_that_does_too(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    kept.accepted("test-patch")
    write_snapshot(kept.store, path)
    store = fresh()

    class Dying(Store):
        def restore(self, parts: Iterable[Words]) -> Iterator[tuple[str, Mapping[str, int]]]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put_back(Dying(kept.client, "default"), path, suspect_unsafe=True)
    refused = put_back(store, path)
    assert (refused.answer, refused.jobs) == ("other_wish", 0)
    assert "was begun with --suspect-unsafe" in refused_said("default", refused).sentence
    assert put_back(store, path, suspect_unsafe=True).counts == {"unknown": 1}


def test_a_field_that_this_version_does_not_know_is_put_back_as_it_is(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    """A hand that wrote one into a record must not cost the whole queue on the day it is needed."""
    ids = [kept.accepted(job_id=f"r{number}") for number in range(3)]
    kept.client.hset("job:r1", "note", "ask Ann – ümläut")
    write_snapshot(kept.store, path)
    assert put_back(fresh(), path).counts == {"ready": len(ids)}
    assert kept.client.hget("job:r1", "note") == "ask Ann – ümläut"


def test_what_is_of_another_type_where_a_record_should_be_is_no_job(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    kept.accepted(job_id="r1")
    kept.client.zadd("queue:fifo:lint-fix:-", {"odd": 1, "gone": 2, "ümläut": 3})
    kept.client.set("job:odd", "x")
    assert write_snapshot(kept.store, path).jobs == 1
    assert put_back(fresh(), path).counts == {"ready": 1}


def test_an_id_that_is_there_twice_comes_back_once(kept: OpenQueue, path: Path, fresh: Callable[[], Store]) -> None:
    kept.accepted(job_id="r1", payload='{"n":1}')
    write_snapshot(kept.store, path)
    lines = lines_of(path)
    with SnapshotWriter(path) as writer:
        for line in (lines[0], lines[1], {**lines[1], "payload": "another"}):
            writer.write(LineKind(line["kind"]), {name: value for name, value in line.items() if name != "kind"})
        writer.finish({"jobs": 2, "refusals": 0, "still": True, "until_ms": 1})
    store = fresh()
    assert put_back(store, path, dry_run=True).counts == {"ready": 1, "kept": 1}
    assert put_back(store, path).counts == {"ready": 1, "kept": 1}
    assert kept.client.get("payload:r1") == '{"n":1}'


@pytest.mark.parametrize(
    "line", [b"\n", b"[]\n", b'{"kind":"job","id":1,"id":"x"}\n', b'"\xff"\n', b"{" * 9999 + b"\n"]
)
def test_a_line_that_is_none_is_named_with_its_number(kept: OpenQueue, path: Path, line: bytes) -> None:
    for number in range(3):
        kept.accepted(job_id=f"r{number}")
    write_snapshot(kept.store, path)
    with gzip.open(path) as file:
        lines = file.readlines()
    with gzip.open(path, "wb") as file:
        file.writelines([*lines[:2], line, *lines[2:]])
    with pytest.raises(SnapshotRefused, match=r"\(line 3\)"):
        put_back(kept.store, path)
    assert kept.store.observe().gate.drain_state == "admit"


def test_lines_of_many_parts_are_checked_and_put_back_in_their_order(
    kept: OpenQueue, path: Path, fresh: Callable[[], Store]
) -> None:
    """Three parts of a file: a line that is wrong is named in each of them, and one that is right is there once."""
    text = json.dumps({"text": "x" * 150_000})
    ids = [kept.accepted(payload=text, job_id=f"r{number}") for number in range(6)]
    write_snapshot(kept.store, path)
    lines = lines_of(path)
    for number in range(1, 7):
        write_lines(path, [*lines[:number], _with(lines[number], "rev", "x"), *lines[number + 1 :]])
        with pytest.raises(SnapshotRefused, match=rf"a rev that is no whole number \(line {number + 1}\)"):
            put_back(kept.store, path)
    write_lines(path, lines)
    assert put_back(fresh(), path).counts == {"ready": 6}
    assert kept.client.zcard("queue:fifo:lint-fix:-") == len(ids)
    assert kept.client.lrange("queue:pending", 0, -1) == ids
