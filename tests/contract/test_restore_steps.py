"""The commands that a restore is made of, one by one on a real server: what each answers, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pytest

from sluicegate.errors import StoreRejected
from sluicegate.job import Outcome
from sluicegate.store import Store
from tests.queues import ClockedQueue, OpenClockedFunction, contract_of

UNSAFE = {"lint-fix": {"deadline_s": 12, "effects": "unsafe"}}


def begin(queue: ClockedQueue, store: Store | None = None, restore: str = "r1", **changes: Any) -> Mapping[str, Any]:
    """Begin a restore of a snapshot of this instant with another contract than the queue's."""
    other = contract_of(max_running=7)
    wish = {
        "restore": restore, "actor": "bob", "reason": "lost", "take_over": False, "dry": False,
        "at": queue.clock.now_ms, "epoch": "5", "contract": other.for_redis(), "digest": other.digest(), "classes": [],
        "costs": [], "confirmed": 0, "acknowledged": 0, "kill": "", "endpoint": {},
    }  # fmt: skip
    return (store or queue.store).restore_begin(wish | changes)


@pytest.fixture
def lost(clocked: ClockedQueue) -> Iterator[ClockedQueue]:
    """Return a queue of which nothing is left but its clock, with a store that has seen nothing."""
    kept = clocked.client.hgetall("machine:clock")
    clocked.client.flushall()
    clocked.client.hset("machine:clock", mapping=kept)
    clocked.store.close()
    clocked.store = Store.connect(clocked.url)
    yield clocked
    clocked.client.flushall()
    clocked.client.hset("machine:clock", mapping=kept)


def row(job_id: str, state: str = "ready") -> tuple[str, ...]:
    """Give the words of a job."""
    fixed = (job_id, "{}", "lint-fix", "-", state, "1900000000000", "1", "1", "0", "1", "4")
    return ("job", *fixed, "admitted_at", "1", "fp", "f")


def restored(
    queue: ClockedQueue, *rows: tuple[str, ...], suspect: str = "0", dry: str = "0", contract: str = ""
) -> tuple[str, Mapping[str, int]]:
    ((answer, counts),) = queue.store.restore([("r1", suspect, dry, contract, *chain.from_iterable(rows))])
    return answer, dict(counts)


def record(queue: ClockedQueue) -> Mapping[str, str]:
    found: Mapping[str, str] = queue.client.hgetall("control:gate")
    return found


def test_a_live_queue_keeps_its_contract_and_is_closed_and_marked(clocked: ClockedQueue) -> None:
    clocked.wait(1000)
    began = begin(clocked)
    assert (began["answer"], began["digest"]) == ("live", clocked.contract.digest())
    assert began["epoch"] == clocked.client.get("control:epoch")
    assert clocked.store.settings()["digest"] == clocked.contract.digest()
    assert [record(clocked)[name] for name in ("drain_state", "restoring", "pin", "since")] == [
        "drain", "r1", "restored", str(clocked.clock.now_ms),
    ]  # fmt: skip


def test_the_same_again_is_resumed_and_moves_nothing(clocked: ClockedQueue) -> None:
    begin(clocked)
    before = record(clocked), clocked.store.gate_log()
    clocked.clock.step()
    again = begin(clocked)
    assert (again["answer"], again["digest"]) == ("resumed", clocked.contract.digest())
    assert (record(clocked), clocked.store.gate_log()) == before
    assert begin(clocked, restore="r2")["answer"] == "other"
    assert begin(clocked, restore="r2", take_over=True)["answer"] == "live"


def test_a_drain_goes_on_since_it_began(clocked: ClockedQueue) -> None:
    clocked.store.order("drain", "ada", "a test")
    since = record(clocked)["since"]
    clocked.wait(1000)
    begin(clocked)
    assert record(clocked)["since"] == since


def test_a_hand_edit_is_adopted_before_it(clocked: ClockedQueue) -> None:
    clocked.client.set("drain_state", "drain")
    begin(clocked)
    assert [(entry.actor, entry.reason) for entry in clocked.store.gate_log()][:2] == [
        ("bob", "restore_begun"), ("hand", "hand_edit"),
    ]  # fmt: skip


@pytest.mark.parametrize("dry", [True, False])
def test_only_a_restore_that_is_not_dry_writes(clocked: ClockedQueue, dry: bool) -> None:
    before = record(clocked)
    assert begin(clocked, dry=dry)["answer"] == "live"
    assert (record(clocked) == before) is dry


def test_a_queue_that_is_gone_gets_the_contract_of_the_snapshot(lost: ClockedQueue) -> None:
    other = contract_of(max_running=7)
    assert begin(lost, dry=True) == {"answer": "clean", "digest": ""}
    assert lost.client.keys() == ["machine:clock"]
    lost.wait(1000)
    ahead = (lost.clock.now_us + 10**12) * 2
    began = begin(lost, epoch=str(ahead), endpoint={"current": "http://a"}, confirmed=3, acknowledged=2)
    assert (began["answer"], began["digest"]) == ("clean", other.digest())
    assert int(began["epoch"]) > ahead
    assert lost.store.settings()["digest"] == other.digest()
    assert record(lost)["since"] == str(lost.clock.now_ms)
    assert lost.client.hgetall("control:duplicates") == {"confirmed": "3", "acknowledged": "2", "audited": "2"}
    assert (lost.client.exists("kill"), lost.client.hgetall("control:endpoint")) == (0, {"current": "http://a"})


def test_the_kill_switch_comes_back(lost: ClockedQueue) -> None:
    begin(lost, kill="bob: stop", epoch="")
    assert lost.client.get("kill") == "bob: stop"


def test_a_contract_that_is_none_opens_nothing(lost: ClockedQueue) -> None:
    with pytest.raises(StoreRejected, match="the contract of the snapshot is not one"):
        begin(lost, contract="{}")


def test_what_the_contract_in_force_does_not_declare_is_named(open_clocked: OpenClockedFunction) -> None:
    strict = open_clocked()
    known: dict[str, Any] = {"classes": ["lint-fix"], "costs": ["-", "browser"], "dry": True}
    assert begin(strict, **known)["answer"] == "live"
    assert begin(strict, **known | {"classes": ["lint-fix", "other"]}) == {"answer": "undeclared", "why": "other"}
    assert begin(strict, **known | {"costs": ["-", "gpu"]}) == {"answer": "undeclared", "why": "gpu"}


def test_undeclared_classes_are_other_where_they_are_let_in(open_clocked: OpenClockedFunction) -> None:
    lax = open_clocked(strict_classes=False)
    assert begin(lax, classes=["other"], dry=True)["answer"] == "live"
    assert begin(lax, classes=["odd"], dry=True) == {"answer": "undeclared", "why": "odd"}


def test_a_snapshot_is_too_old_once_an_end_may_have_been_forgotten(clocked: ClockedQueue) -> None:
    kept_ms = round(clocked.contract.timings.final_retention_s * 1000)
    assert begin(clocked, at=clocked.clock.now_ms - kept_ms, dry=True)["answer"] == "live"
    assert begin(clocked, at=clocked.clock.now_ms - kept_ms - 1, dry=True)["answer"] == "too_old"


def test_what_grows_too_old_in_the_middle_of_a_restore_puts_no_more_back(clocked: ClockedQueue) -> None:
    """A job that has ended is forgotten by now, and would come back to run again."""
    kept_ms = round(clocked.contract.timings.final_retention_s * 1000)
    at = clocked.clock.now_ms
    begin(clocked, at=at)
    clocked.wait(kept_ms)
    assert restored(clocked, row("a")) == ("ok", {"ready": 1})
    assert begin(clocked, at=at)["answer"] == "resumed"
    clocked.wait(1)
    assert restored(clocked, row("b")) == ("too_old", {})
    assert begin(clocked, at=at) == {"answer": "too_old", "why": "begun"}
    assert begin(clocked, at=at, restore="r2", take_over=True) == {"answer": "too_old", "why": "begun"}
    assert begin(clocked, restore="r2", take_over=True)["answer"] == "live"
    assert clocked.store.restore_end("r2", actor="bob", note="n") == "moved"
    assert begin(clocked, at=at) == {"answer": "too_old"}
    assert not {"restoring", "restoring_until"} & record(clocked).keys()


def test_half_of_what_is_unsafe_does_not_come_back_otherwise_than_the_rest(clocked: ClockedQueue) -> None:
    for suspect, begun in ((True, "with"), (False, "without")):
        asked: dict[str, Any] = {"restore": begun, "suspect": suspect}
        assert begin(clocked, **asked)["answer"] == "live"
        assert begin(clocked, **asked)["answer"] == "resumed"
        other = asked | {"suspect": not suspect}
        for dry in (True, False):
            assert begin(clocked, **other, dry=dry) == {"answer": "other_wish", "why": begun}
        assert begin(clocked, **other, take_over=True)["answer"] == "resumed"
        assert begin(clocked, **other)["answer"] == "resumed"
        assert clocked.store.restore_end(begun, actor="bob", note="n") == "moved"
        assert not {"restoring", "restoring_until", "restoring_suspect"} & record(clocked).keys()


def with_retention(queue: ClockedQueue, seconds: float) -> None:
    timings = queue.contract.timings.model_copy(update={"final_retention_s": seconds})
    contract = queue.contract.model_copy(update={"timings": timings})
    queue.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "a test")


def test_a_retention_that_was_raised_does_not_bring_back_what_went_before(clocked: ClockedQueue) -> None:
    with_retention(clocked, 100)
    at = clocked.clock.now_ms
    clocked.wait(90_000)
    with_retention(clocked, 200)
    assert begin(clocked, at=at, dry=True)["answer"] == "live"
    clocked.wait(5_000)
    with_retention(clocked, 1000)
    raised_at = clocked.clock.now_ms
    clocked.wait(5_000)
    assert begin(clocked, at=at, dry=True)["answer"] == "live"
    clocked.wait(1)
    assert begin(clocked, at=at, dry=True)["answer"] == "too_old"
    assert begin(clocked, at=raised_at - 1, dry=True)["answer"] == "live"
    clocked.wait(500_000)
    assert begin(clocked, at=raised_at - 1, dry=True)["answer"] == "too_old"
    assert begin(clocked, at=raised_at, dry=True)["answer"] == "live"
    with_retention(clocked, 50)
    assert begin(clocked, at=raised_at, dry=True)["answer"] == "too_old"
    with_retention(clocked, 1000)
    assert begin(clocked, at=raised_at, dry=True)["answer"] == "too_old"
    clocked.wait(1_000_000)
    with_retention(clocked, 2000)
    # The raise before was longer ago than what is raised now.
    assert begin(clocked, at=clocked.clock.now_ms - 900_000, dry=True)["answer"] == "live"


@pytest.mark.parametrize("later", [{"final_retention_s": 500}, {"final_retention_s": 1000, "closed_retry_s": 45}])
def test_a_retention_that_is_lowered_or_left_is_not_raised(clocked: ClockedQueue, later: Mapping[str, float]) -> None:
    with_retention(clocked, 100)
    with_retention(clocked, 1000)
    clocked.wait(1)
    at = clocked.clock.now_ms
    clocked.wait(10_000)
    timings = clocked.contract.timings.model_copy(update=later)
    contract = clocked.contract.model_copy(update={"timings": timings})
    assert clocked.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "a test") == "moved"
    clocked.wait(200_000)
    assert begin(clocked, at=at, dry=True)["answer"] == "live"


def test_what_was_begun_where_no_queue_was_can_be_completed_however_old_it_is(lost: ClockedQueue) -> None:
    """Nothing has run since, for the gate stays closed."""
    kept_ms = round(lost.contract.timings.final_retention_s * 1000)
    at = lost.clock.now_ms - 3 * kept_ms
    assert begin(lost, at=at)["answer"] == "clean"
    lost.wait(kept_ms)
    assert begin(lost, at=at)["answer"] == "resumed"
    assert restored(lost, row("a")) == ("ok", {"ready": 1})
    assert begin(lost, at=at, restore="r2", take_over=True)["answer"] == "live"
    assert begin(lost, at=at, restore="r2")["answer"] == "resumed"
    assert lost.store.restore_end("r2", actor="bob", note="n") == "moved"
    assert begin(lost, at=at) == {"answer": "too_old"}


def test_what_is_put_back_is_counted_and_what_stays_is_not(clocked: ClockedQueue) -> None:
    there = clocked.accepted()
    begin(clocked)
    assert restored(clocked, row(there)) == ("ok", {"kept": 1})
    assert clocked.client.hget("counters", "restored") is None
    assert restored(clocked, row("a"), row("b"), dry="1") == ("ok", {"ready": 2})
    assert clocked.client.exists("job:a") == 0
    assert "restored" not in clocked.counters()
    assert restored(clocked, row("a"), row("b")) == ("ok", {"ready": 2})
    assert clocked.counters()["restored"] == 2
    assert restored(clocked, row("a")) == ("ok", {"kept": 1})
    assert restored(clocked, row("a"), row("c")) == ("ok", {"kept": 1, "ready": 1})
    assert clocked.client.hget("counters", "restored") == "3"
    refusal = ("refusal", "k", "f", "overloaded", "0", str(clocked.clock.now_ms), "")
    assert restored(clocked, row("d"), refusal, row("e")) == ("ok", {"ready": 2, "refusal": 1})
    assert (clocked.state("d"), clocked.client.hget("job:k", "reason")) == ("ready", "overloaded")


def test_parts_are_put_back_only_while_that_restore_is_marked(clocked: ClockedQueue) -> None:
    assert restored(clocked, row("a")) == ("not_restoring", {})
    begin(clocked)
    assert clocked.store.restore_end("r2", actor="bob", note="n") == "unchanged"
    assert record(clocked)["restoring"] == "r1"
    assert clocked.store.restore_end("r1", actor="bob", note="n") == "moved"
    assert restored(clocked, row("a")) == ("not_restoring", {})


def test_what_is_unsafe_says_the_contract_in_force_and_only_without_one_that_of_the_file(lost: ClockedQueue) -> None:
    unsafe = contract_of(classes=UNSAFE).for_redis()
    assert restored(lost, row("a"), suspect="1", dry="1", contract=unsafe) == ("ok", {"unknown": 1})
    assert restored(lost, row("a"), suspect="0", dry="1", contract=unsafe) == ("ok", {"ready": 1})
    begin(lost)
    assert restored(lost, row("a"), suspect="1", dry="1", contract=unsafe) == ("ok", {"ready": 1})
    assert restored(lost, row("a"), suspect="1", contract=unsafe) == ("ok", {"ready": 1})


def test_without_settings_nothing_is_put_back(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    begin(queue)
    queue.client.delete("queue:settings")
    assert restored(queue, row("a")) == ("not_restoring", {})


def test_the_end_of_a_restore_has_its_line_and_leaves_the_gate_shut(clocked: ClockedQueue) -> None:
    begin(clocked)
    job = clocked.submit()
    assert (job.accepted, Outcome.SUCCEEDED.value) == (False, "succeeded")
    clocked.store.restore_end("r1", actor="bob", note="2 jobs")
    last = clocked.store.gate_log()[0]
    assert (last.reason, last.actor, last.note, last.to_state) == ("restored", "bob", "2 jobs", "drain")
    assert record(clocked)["pin"] == "restored"


def test_whatever_ends_a_call_no_job_is_there_without_its_payload(clocked: ClockedQueue) -> None:
    begin(clocked)
    whole, broken = row("a"), list(row("b"))
    broken[10] = "no number"  # its rev
    with pytest.raises(StoreRejected):
        restored(clocked, whole, tuple(broken))
    assert clocked.client.hget("job:a", "state") == "ready"
    assert clocked.client.get("payload:a") == "{}"
    assert restored(clocked, whole, row("b")) == ("ok", {"kept": 1, "ready": 1})


def test_where_there_is_no_queue_a_dry_run_goes_by_the_contract_of_the_snapshot(lost: ClockedQueue) -> None:
    for classes, state in (({}, "ready"), (UNSAFE, "unknown")):
        contract = contract_of(classes=dict(classes)).for_redis()
        assert restored(lost, row("a"), suspect="1", dry="1", contract=contract) == ("ok", {state: 1})
