"""Keys of the wrong type and keys of the old layout: found by name, and refused where they would be forgotten."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate import keys
from sluicegate.__main__ import dispatch
from sluicegate.doctor import examine
from sluicegate.errors import StoreRejected
from sluicegate.job import Outcome
from sluicegate.keys import KeyType
from sluicegate.replies import StrangeKeys
from sluicegate.server_findings import Finding, Level
from sluicegate.store import Store
from tests.contract.test_doctor import seen_on, settings_for
from tests.kept import fill
from tests.queues import OpenQueue, OpenQueueFunction, contract_of
from tests.recovery import Recovery

BY_NAME = ("--as", "ada", "--reason", "a test")


@pytest.fixture
def queue(redis_url: str) -> Iterator[OpenQueue]:
    """Return an open queue whose invariants nobody checks afterwards: the tests break them."""
    opened = OpenQueue(redis_url, contract_of(max_pending=1000))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _path_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def strange(queue: OpenQueue, name: str = "default") -> StrangeKeys:
    store = Store.connect(queue.url, name, read_only=True)
    try:
        return store.strange_keys()
    finally:
        store.close()


def findings(queue: OpenQueue, name: str) -> list[Finding]:
    return [finding for finding in examine(seen_on(queue.url)) if finding.name == name]


def test_every_name_has_its_type() -> None:
    named = {value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
    assert set(keys.TYPES) == named - {keys.DEFAULT_QUEUE}


def test_a_queue_that_holds_everything_has_each_key_of_its_type(queue: OpenQueue) -> None:
    fill(queue, ready=600)
    queue.store.order("open", "ada", "go on")
    queue.store.hello("w1", report="action=stop_pull")
    queue.store.kill_switch(on=True, actor="ada", reason="a test")
    recovery = Recovery(queue)
    recovery.step("recover")
    recovery.put_canary(1)
    assert queue.client.dbsize() > 1000, "more than the walk takes in at once"
    types = {queue.client.type(key) for key in queue.client.scan_iter()}
    assert types == {kind.value for kind in KeyType}
    assert strange(queue) == StrangeKeys()
    assert [finding.level for finding in findings(queue, "keys")] == [Level.OK]


WRONG = (
    ("queue:fifo:lint-fix:-", "zset"),
    ("queue:leases", "zset"),
    ("queue:delayed", "zset"),
    ("queue:unknown", "zset"),
    ("queue:pairs", "set"),
    ("running:cost:browser", "zset"),
    ("counters:lint-fix", "hash"),
    ("job:j1", "hash"),
    ("run:r1", "hash"),
    ("control:duplicates", "hash"),
)


@pytest.mark.parametrize(("name", "wanted"), WRONG, ids=[name for name, _ in WRONG])
def test_a_key_of_another_type_is_named_by_doctor_whatever_it_stops(
    queue: OpenQueue, name: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue.accepted(job_id="j0")
    queue.client.delete(name)
    queue.client.rpush(name, "somebody's own list")
    assert strange(queue).wrong == ((name, "list", wanted),)
    assert dispatch(["queue", "doctor", "--settings", str(settings_for(queue, tmp_path))]) == 1
    text = capsys.readouterr().out
    assert f"fix    keys: The key {name} is of type list, not {wanted}" in text
    assert f"`RENAME {name} aside:{name}`" in text
    # What the hint says is enough for the queue to go on.
    queue.client.rename(name, f"aside:{name}")
    assert strange(queue).wrong == ()
    assert queue.accepted(job_id="j2")
    assert queue.store.observe().gate.readable


def test_an_index_of_another_type_stops_the_figures_and_doctor_says_so(queue: OpenQueue) -> None:
    queue.client.set("queue:leases", "x")
    with pytest.raises(StoreRejected, match="WRONGTYPE"):
        queue.store.observe()
    (gate,) = findings(queue, "gate")
    assert gate.level is Level.FIX
    assert "WRONGTYPE" in gate.said
    (found,) = findings(queue, "keys")
    assert "queue:leases is of type string, not zset" in found.said


@pytest.mark.parametrize("name", ["queue:ready:lint-fix:-", "queue:delayed", "queue:fifo:lint-fix:-"])
@pytest.mark.parametrize("many", [1, 3])
def test_what_an_index_of_another_type_kept_from_being_accepted_is_not_there(
    queue: OpenQueue, name: str, many: int
) -> None:
    queue.accepted(job_id="before")
    if queue.client.exists(name):
        queue.client.rename(name, "aside")
    queue.client.set(name, "x")
    asked = [queue.producer.prepare("lint-fix", f"payload {n}", job_id=f"j{n}") for n in range(many)]
    with pytest.raises(StoreRejected, match="WRONGTYPE"):
        queue.producer.submit_many(asked)
    assert not queue.client.exists(*[f"job:j{n}" for n in range(many)])
    queue.client.delete(name)
    if queue.client.exists("aside"):
        queue.client.rename("aside", name)
    assert all(decision.accepted and not decision.replayed for decision in queue.producer.submit_many(asked))
    claimed = {job.job_id: job.payload for job in queue.claim(slots=10).jobs}
    assert {f"j{n}": f"payload {n}" for n in range(many)}.items() <= claimed.items()


def test_a_list_for_people_of_another_type_keeps_no_job_out(queue: OpenQueue) -> None:
    queue.client.set("queue:pending", "x")
    queue.accepted(job_id="a")
    queue.client.delete("queue:pending")
    queue.client.set("queue:pending", "x")
    asked = [queue.producer.prepare("lint-fix", "{}", job_id=job_id) for job_id in ("b", "c")]
    assert all(decision.accepted for decision in queue.producer.submit_many(asked))
    assert queue.client.lrange("queue:pending", 0, -1) == ["b", "c"]


@pytest.mark.parametrize("name", ["running:lint-fix", "running:cost:browser"])
def test_jobs_that_were_claimed_over_an_index_of_another_type_are_found_by_their_leases(
    queue: OpenQueue, name: str
) -> None:
    for n in range(3):
        queue.accepted("lint-fix", job_id=f"j{n}", cost_class="browser")
    queue.client.set(name, "x")
    with pytest.raises(StoreRejected, match="WRONGTYPE"):
        queue.claim(slots=10)
    moved = {f"j{n}" for n in range(3) if queue.state(f"j{n}") == "running"}
    assert set(queue.client.zrange("queue:leases", 0, -1)) == moved
    waiting = {f"j{n}" for n in range(3)} - moved
    assert set(queue.client.zrange("queue:fifo:lint-fix:browser", 0, -1)) == waiting


LOST = (
    ("queue:fifo:test-patch:-", "ready"),
    ("queue:delayed", "delayed"),
    ("queue:unknown", "unknown"),
    ("queue:blocked", "blocked"),
)


def test_a_record_without_its_class_stops_nobody_elses_job(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False, lease_ms=100)
    ids = [queue.accepted(job_id=f"j{number}") for number in range(3)]
    jobs = queue.claim(3).jobs
    queue.client.hdel(f"job:{ids[1]}", "class")

    settled = queue.store.settle_many("w1", [queue.settlement(job, Outcome.SUCCEEDED) for job in jobs])
    assert [(one.answer, one.state) for one in settled] == [("ok", "succeeded"), ("stale", "gone"), ("ok", "succeeded")]
    queue.sweep_until(lambda: bool(queue.log("entry_dropped")), "the look at the lease that ran out")
    (entry,) = queue.log("entry_dropped")
    assert (entry["job"], entry["note"]) == (ids[1], "queue:leases named it, its record is gone or not whole")
    assert not queue.client.exists("queue:leases", "running:lint-fix")


@pytest.mark.parametrize(("container", "state"), LOST, ids=[state for _, state in LOST])
def test_a_job_that_its_container_no_longer_names_is_found(queue: OpenQueue, container: str, state: str) -> None:
    fill(queue, ready=20)
    job_id = queue.client.zrange(container, 0, 0)[0]
    assert queue.state(job_id) == state
    queue.client.zrem(container, job_id)
    assert strange(queue) == StrangeKeys(lost=((job_id, container),))
    (finding,) = findings(queue, "jobs")
    assert finding.level is Level.FIX
    assert finding.said == f"Job {job_id} is open by its record, and {container} does not name it: nobody finds it."
    queue.client.delete(container)
    assert len(strange(queue).lost) >= 1


def test_a_journal_is_no_run_and_a_run_no_journal(queue: OpenQueue) -> None:
    queue.client.hset("run:r1:journal", "a", "b")
    queue.client.xadd("run:r2", {"a": "b"})
    assert set(strange(queue).wrong) == {("run:r1:journal", "hash", "stream"), ("run:r2", "stream", "hash")}


def test_other_queues_and_strangers_are_nobody_of_this_queue(queue: OpenQueue) -> None:
    queue.client.set("{mail}:queue:leases", "x")
    queue.client.set("somebody:else", "x")
    queue.client.set("queue", "x")
    assert strange(queue) == StrangeKeys()
    assert strange(queue, "mail").wrong == (("{mail}:queue:leases", "string", "zset"),)


def test_a_queue_of_which_much_is_wrong_names_some_and_counts_the_rest(queue: OpenQueue) -> None:
    for number in range(25):
        queue.client.set(f"job:j{number}", "x")
    found = findings(queue, "keys")
    assert len(found) == 21
    assert found[-1].said == "5 more keys are of a wrong type."


def test_who_may_not_scan_is_told_that_it_is_not_shown(queue: OpenQueue) -> None:
    words = ("ACL", "SETUSER", "eye", "reset", "on", ">glass", "~*", "&*", "+@all", "-scan")
    queue.client.execute_command(*words)
    try:
        seen = seen_on(queue.url.replace("redis://", "redis://eye:glass@"))
        (found,) = [finding for finding in examine(seen) if finding.name == "keys"]
        assert (found.level, found.hint) == (Level.UNSEEN, "A user with SCAN and TYPE sees them.")
    finally:
        queue.client.acl_deluser("eye")


OLD = (
    ("queue:enqueued", "zset"),
    ("queue:deadlines", "zset"),
    ("queue:enqueued:lint-fix", "zset"),
    ("queue:deadlines:lint-fix", "zset"),
    ("idem:k1", "hash"),
)


@pytest.mark.parametrize(("name", "kind"), OLD, ids=[name for name, _ in OLD])
def test_a_queue_of_the_old_layout_is_refused_instead_of_forgotten(
    queue: OpenQueue, name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "zset":
        queue.client.zadd(name, {"j1": 1})
    else:
        queue.client.hset(name, mapping={"job_id": "j1", "fp": "f", "accepted": "1", "reason": "", "retry_at": "0"})
    settings = ("--settings", str(settings_for(queue, tmp_path)))
    before = queue.store.settings()
    for words in (("queue", "upgrade", *BY_NAME, *settings), ("queue", "apply", *BY_NAME, *settings)):
        assert dispatch(list(words)) == 1
        sentence, hint = capsys.readouterr().err.splitlines()
        assert sentence == (
            f"Queue default was written by version 1 of Sluicegate's layout: the key {name} is there, and this version "
            "would forget its jobs and its decisions."
        )
        assert hint.startswith("Let that version finish its jobs")
    assert queue.store.settings() == before
    (found,) = findings(queue, "layout")
    assert found.level is Level.FIX
    assert name in found.said


@pytest.mark.parametrize("name", keys.OLD_NAMES)
def test_no_queue_is_opened_over_one_of_the_old_layout(
    redis_url: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = OpenQueue(redis_url, contract_of())
    try:
        settings = settings_for(queue, tmp_path)
        queue.client.flushall()
        queue.client.zadd(name, {"j1": 1})
        assert dispatch(["queue", "init", *BY_NAME, "--settings", str(settings)]) == 1
        assert f"version 1 of Sluicegate's layout: the key {name} is there" in capsys.readouterr().err
        assert queue.client.keys() == [name]
        contract = queue.contract
        assert queue.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "x") == "old_layout"
        assert queue.client.keys() == [name]
    finally:
        queue.close()


def test_a_strangers_key_of_such_a_name_is_no_old_layout(queue: OpenQueue) -> None:
    queue.client.set("idem:k1", "x")
    queue.client.hset("idem:k2", "theirs", "1")
    assert strange(queue) == StrangeKeys()
