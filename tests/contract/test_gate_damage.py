"""A gate whose keys are damaged reads as drain, answers closed, raises nowhere, and a named person makes it whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from drill.server import QueueServer
from exporter.acl import acl_line
from sluicegate import keys
from sluicegate.replies import GateAnswer
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.queues import OpenQueue, OpenQueueFunction, contract_of

PASSWORD = "reader"
RUN = {"runbook": "drain-and-recover", "trigger": "webhook", "run": "run-1", "actor": "ada", "reason": "a test"}

Words = tuple[str, ...]

_TIMES = ("since", "ok_since", "dwell_ms", "left_reject_at", "reopened_at", "limit_at")
_NUMBERS = (*_TIMES, "window", "canary_ok", "canary_failed", "green_backlog")
_CHECKED = (*_NUMBERS, "ramp", "green", "drain_state", "rollback_reason", "pin")
_FIELDS = (*_CHECKED, "pin_note", "reason", "actor")

# Damage after which nobody can know how the gate stands.
UNREADABLE: tuple[Words, ...] = (
    *(("HDEL", keys.GATE, field) for field in _FIELDS),
    *(("HSET", keys.GATE, field, "soon") for field in _CHECKED),
    *(("HSET", keys.GATE, "since", text) for text in ("", "-1", "nan", "inf", "0x10", "1e3", " 5", "9" * 40)),
    *(("DEL", name) for name in (keys.GATE, keys.EPOCH, keys.DRAIN_STATE, keys.ADMISSION, keys.SETTINGS)),
    *(("SET", name, "a string") for name in (keys.GATE, keys.DUPLICATES, keys.SETTINGS)),
    *(("HSET", name, "a", "hash") for name in (keys.EPOCH, keys.DRAIN_STATE, keys.ADMISSION)),
    *(("SET", keys.EPOCH, text) for text in ("", "many", "nan", "-1", "1.5", "9" * 40)),
    *(("SET", keys.DRAIN_STATE, text) for text in ("", "ADMIT", "admit ", "open")),
    *(("SET", keys.ADMISSION, text) for text in ("", "yes", "OPEN")),
    *(("HSET", keys.DUPLICATES, field, "two") for field in ("confirmed", "acknowledged", "audited")),
    *(("HSET", keys.SETTINGS, "digest", "d2", "contract", text) for text in ("", "{", "[]", "{}", '"text"')),
    ("HSET", keys.SETTINGS, "digest", "d3", "contract", '{"timings":{}}'),
)

_NO_STRINGS = (keys.DECISION, keys.GATE_LOG, keys.LOCK_CONTROLLER, keys.RUNS_LIVE, keys.RUNS_RECENT, keys.WAKE)
_MORE = (keys.RECONCILE_LOG, keys.ENDPOINT, keys.COUNTERS, "run:run-0")

# Damage of what stands beside the gate: it goes on, and can still close.
BESIDE: tuple[Words, ...] = (
    *(("SET", name, "a string") for name in (*_NO_STRINGS, *_MORE)),
    ("HSET", keys.COUNTERS, "admitted", "many"),
    ("RPUSH", keys.LOCK_RUN, "run-0"),
    ("SET", keys.LOCK_RUN, "run-0"),
    ("RPUSH", keys.SEEN, "now"),
    *(("SET", keys.SEEN, text) for text in ("nan", "inf", "soon", "9" * 15)),
    *(("RPUSH", name, "x") for name in (keys.ROLLBACK_REASON, keys.CANARY_OK_COUNT, keys.KILL)),
    *(("SET", keys.SNAPSHOT, text) for text in ("nan", "soon")),
    ("HSET", keys.LOCK_CONTROLLER, "fence", "x", "lease_end", "y", "owner", "z"),
)


@pytest.fixture
def queue(redis_url: str) -> Iterator[OpenQueue]:
    """Return an open queue whose invariants nobody checks afterwards: the tests break them."""
    opened = OpenQueue(redis_url, contract_of())
    yield opened
    opened.close()


def damaged(queue: OpenQueue, words: Words) -> None:
    """Do what no client of ours does."""
    if words[0] in ("RPUSH", "SET") or (words[0] == "HSET" and queue.client.type(words[1]) != "hash"):
        queue.client.delete(words[1])
    queue.client.execute_command(*words)


def decided(queue: OpenQueue, action: str, fence: str, epoch: int) -> GateAnswer:
    return queue.store.move_gate(action=action, reason="x", exit_ok=True, epoch=epoch, fence=fence, figures="{}")


@pytest.mark.parametrize("words", UNREADABLE, ids=lambda words: " ".join(words)[:60])
def test_a_damaged_gate_reads_as_drain_and_raises_nowhere(queue: OpenQueue, words: Words) -> None:
    queue.accepted(idempotency_key="k1")
    _, fence = queue.store.lead("c1")
    damaged(queue, words)

    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.readable, gate.pin) == ("drain", False, "control_data_lost")
    assert gate.admission_ratio == 0
    assert queue.submit().reason == "admission_closed"
    # What was decided stays decided, as long as there are settings.
    assert queue.submit(idempotency_key="k1").accepted == (words[1] != keys.SETTINGS)
    claimed = queue.claim()
    assert (claimed.drain_state, claimed.jobs) == ("drain", ())
    assert not queue.store.tick(fence).gate.readable
    moved = decided(queue, "admit", fence, gate.epoch)
    assert (moved.answer, moved.drain_state) == ("unreadable", "drain")
    assert queue.store.open_run({**RUN, "confirmed": True, "digest": "", "episode": ""}).answer == "unreadable"


@pytest.mark.parametrize("order", ["open", "drain", "hold", "reject"])
@pytest.mark.parametrize(
    "words", [words for words in UNREADABLE if words[1] != keys.SETTINGS][::4], ids=lambda words: " ".join(words)[:60]
)
def test_a_named_person_makes_a_damaged_gate_whole(queue: OpenQueue, words: Words, order: str) -> None:
    damaged(queue, words)

    answer = queue.store.order(order, "ada", "looked at what was lost")

    assert answer.answer == "moved"
    gate = queue.store.observe().gate
    opened = order == "open"
    assert gate.readable
    assert (gate.drain_state, gate.pin) == (("admit", None) if opened else ("drain", "operator"))
    # A duplicate that can't be counted any more is not forgotten by anybody but whoever opens.
    lost_duplicates = words[1] == keys.DUPLICATES and not opened
    assert gate.duplicates_unacknowledged == (1 if lost_duplicates else 0)


def test_lost_settings_are_applied_again_before_the_gate_is_opened(queue: OpenQueue) -> None:
    queue.client.delete(keys.SETTINGS)
    assert queue.store.order("open", "ada", "looked").answer == "unreadable"

    contract = queue.contract
    assert queue.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "they were lost") == "moved"
    assert queue.store.observe().gate.drain_state == "admit"


def test_a_gate_that_is_gone_while_jobs_are_left_comes_back_closed_by_name(queue: OpenQueue) -> None:
    queue.accepted()
    for name in (keys.SETTINGS, keys.GATE, keys.EPOCH, keys.DRAIN_STATE, keys.ADMISSION):
        queue.client.delete(name)
    contract = queue.contract
    assert queue.store.init_queue(contract.for_redis(), contract.digest(), "ada", "try").answer == "not_empty"
    assert queue.store.observe().gate.pin == "uninitialised"

    assert queue.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "all was lost") == "moved"

    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.pin) == ("drain", "control_data_lost")
    assert queue.store.order("open", "ada", "looked at the jobs").answer == "moved"
    assert len(queue.claim().jobs) == 1


def test_settings_are_not_applied_where_no_queue_is(redis_url: str, open_queue: OpenQueueFunction) -> None:
    contract = open_queue().contract
    other = Store.connect(redis_url, "other")
    assert other.apply_settings(contract.for_redis(), contract.digest(), "ada", "too early") == "unreadable"
    assert other.settings() == {}
    other.close()


@pytest.mark.parametrize("words", BESIDE, ids=lambda words: " ".join(words)[:60])
def test_damage_beside_the_gate_does_not_keep_it_from_closing(queue: OpenQueue, words: Words) -> None:
    damaged(queue, words)

    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.readable) == ("admit", True)
    queue.submit()
    assert queue.claim().drain_state == "admit"
    leading, fence = queue.store.lead("c1")
    assert leading
    epoch = queue.store.tick(fence).gate.epoch
    moved = decided(queue, "drain", fence, epoch)
    assert (moved.answer, moved.drain_state) == ("moved", "drain")
    assert queue.store.gate_log(1)[0].to_state == "drain"
    opened = queue.store.open_run({**RUN, "trigger": "person", "confirmed": True, "digest": "", "episode": ""})
    assert opened.answer == "moved"


@pytest.mark.parametrize("text", ["nan", "inf", "soon", "9" * 15, ""])
def test_a_damaged_look_of_the_controller_counts_as_silence(open_queue: OpenQueueFunction, text: str) -> None:
    queue = open_queue(timings={"controller_silent_s": 30})
    queue.accepted()
    queue.client.set(keys.SEEN, text)
    assert queue.submit().reason == "controller_silent"


@pytest.mark.parametrize("edit", ["admit", "reject_new", "recovering", "drain"])
@pytest.mark.parametrize("order", ["open", "reject", "drain"])
def test_a_raw_key_that_is_put_right_by_hand_opens_no_more_than_the_last_move(
    queue: OpenQueue, order: str, edit: str
) -> None:
    stood = queue.store.order(order, "ada", "a test").drain_state
    queue.client.set(keys.DRAIN_STATE, "opne")
    assert queue.store.observe().gate.drain_state == "drain"

    queue.client.set(keys.DRAIN_STATE, edit)

    tightness = ["admit", "reject_new", "recovering", "drain"]
    assert queue.store.observe().gate.drain_state == max(stood, edit, key=tightness.index)


@pytest.fixture
def reader(queue: OpenQueue, server: QueueServer) -> Iterator[Store]:
    """Give a store whose user can only read."""
    queue.client.execute_command(*acl_line("reader", ("default",)).replace("PASSWORD", PASSWORD).split())
    store = Store.connect(server.url.replace("redis://", f"redis://reader:{PASSWORD}@"), read_only=True)
    yield store
    store.close()
    queue.client.execute_command("ACL", "DELUSER", "reader")


@pytest.mark.parametrize("words", [("PING",), *UNREADABLE[::7], *BESIDE], ids=lambda words: " ".join(words)[:60])
def test_a_user_that_cannot_write_reads_the_same(queue: OpenQueue, reader: Store, words: Words) -> None:
    queue.accepted()
    if len(words) > 1:
        damaged(queue, words)

    seen, own = reader.observe(), queue.store.observe()

    assert seen.gate == own.gate
    assert (seen.ready, seen.settings_digest) == (own.ready, own.settings_digest)


def test_a_user_that_cannot_write_is_refused_by_the_server(reader: Store) -> None:
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader._server.run(lambda client: client.set(keys.DRAIN_STATE, "admit"))


def test_a_user_that_may_not_dump_decides_by_the_same_gate(queue: OpenQueue) -> None:
    queue.client.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all", "-dump")
    limited = Store.connect(queue.url.replace("redis://", "redis://limited:secret@"))
    try:
        assert limited.admit([Submission("k1", "lint-fix", "{}").words()])[0].accepted
        queue.store.order("drain", "ada", "a test")
        assert limited.admit([Submission("k2", "lint-fix", "{}").words()])[0].reason == "admission_closed"
        assert limited.observe().gate == queue.store.observe().gate
    finally:
        limited.close()
        queue.client.execute_command("ACL", "DELUSER", "limited")
