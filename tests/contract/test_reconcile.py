"""Unknown jobs: settled by whoever can tell, on a schedule, and never repeated where nobody can."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from sluicegate.job import CallKind, Job, Outcome
from sluicegate.reconcile import Reconciled, by_ledger
from sluicegate.reconciler import Reconciler
from sluicegate.resolvers import Finding, HttpResolver, Known, LedgerResolver, Unknown, finding_of
from sluicegate.settings import ReconcileSettings
from tests.queues import ClockedQueue, OpenQueue, wait_until

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answer as the test says; note which keys were asked about."""

    server: Provider

    def do_GET(self) -> None:
        self.server.asked.append(unquote(self.path.removeprefix("/effects/")))
        self.server.answer(self)

    def say(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: what was asked is in `asked`."""


class Provider(ThreadingHTTPServer):
    """Be a provider that knows its effects by key; `over` lets what hangs go."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.answer: Answer = done_answer(done=True)
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/effects/{{key}}"


def done_answer(**body: Any) -> Answer:
    return lambda handler: handler.say(200, json.dumps(body).encode())


def hang(handler: Handler) -> None:
    """Accept, and say nothing until the test is over."""
    handler.server.over.wait(30)


def drip(handler: Handler) -> None:
    """Promise a long answer and send it so slowly that no read of it ever times out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.over.wait(0.05):
        try:
            handler.wfile.write(b" ")
        except OSError:
            return


def drop(handler: Handler) -> None:
    handler.connection.close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def reconciler(queue: OpenQueue, provider: Provider | None = None, **changes: Any) -> Reconciler:
    """Give one that asks about jobs at once and again at once."""
    fields = {"after_s": 0.001, "ask_again_s": 0.001, "http_timeout_s": 0.5, **changes}
    return Reconciler(queue.store, ReconcileSettings(http_url=provider and provider.url, **fields))


def turn(one: Reconciler) -> int:
    return asyncio.run(one.turn())


def unknown(queue: OpenQueue, job_class: str = "send-mail", *, intent: bool = True, **fields: Any) -> Job:
    """Make a job unknown, and wait until it has been so for two milliseconds."""
    queue.accepted(job_class, **fields)
    job = queue.claimed()
    if intent:
        assert queue.store.intent("w1", job.job_id, job.fence) == "go"
    assert queue.settle(job, Outcome.UNKNOWN, kind=CallKind.TIMEOUT).state == "unknown"
    since = queue.client.zscore("queue:unknown", job.job_id)
    if isinstance(queue, ClockedQueue):
        queue.wait(3)
    wait_until(lambda: queue.store.unresolved()["now"] > since + 2, "2 ms of being unknown")
    return job


def asked(url: str, key: str = "k1", timeout_s: float = 0.5) -> Finding:
    async def ask() -> Finding:
        async with httpx.AsyncClient(timeout=timeout_s) as client:
            row = {"id": "j1", "since": 0, "key": key, "class": "c", "fence": "1", "effects": "unsafe"}
            job = Unknown.of({**row, "confirmed": False, "intent_fence": "1", "known_start": True})
            return await HttpResolver(client, url, timeout_s).ask(job)

    return asyncio.run(ask())


def test_the_ledger_settles_what_was_confirmed_what_made_no_call_and_what_may_be_repeated(queue: OpenQueue) -> None:
    confirmed, untouched, keyed, unsafe = (
        unknown(queue),
        unknown(queue, intent=False),
        unknown(queue, "lint-fix"),
        unknown(queue),
    )
    queue.client.hset(f"job:{confirmed.job_id}", "confirmed", "1")

    assert turn(reconciler(queue)) == 3

    assert queue.state(confirmed.job_id) == "succeeded"
    assert queue.state(untouched.job_id) == "ready"
    assert queue.state(keyed.job_id) == "ready"
    assert queue.state(unsafe.job_id) == "unknown"
    assert {entry["actor"] for entry in queue.log("reconcile")} == {"ledger"}
    assert len(queue.log("reconcile")) == 3


def test_every_job_that_leaves_unknown_is_counted_beside_its_record_and_the_oldest_that_stays_is_shown(
    queue: OpenQueue,
) -> None:
    assert queue.store.observe().oldest_unknown_at_ms is None
    late, settled, stays, _ = (unknown(queue) for _ in range(4))

    queue.settle(late, Outcome.SUCCEEDED)
    queue.store.reconcile(settled.job_id, "retry", actor="ada", reason="a repeat is safe", source="person")

    seen = queue.store.observe()
    assert seen.oldest_unknown_at_ms == queue.client.zscore("queue:unknown", stays.job_id)
    assert (seen.counters["unknown_left"], seen.counters["unknown_reconciled"]) == (2, 2)


@pytest.mark.parametrize(
    ("source", "intent", "restored", "cause"),
    [
        ("ledger", True, False, "no_time_for_retry_call_may_have_happened"),
        ("person", True, False, "no_time_for_retry_call_may_have_happened"),
        ("ledger", False, False, "no_time_for_retry"),
        ("ledger", False, True, "no_time_for_retry_call_may_have_happened"),
        ("http", True, False, "no_time_for_retry"),
    ],
)
def test_an_unknown_job_without_time_for_a_repeat_expires_saying_whether_its_call_may_have_happened(
    clocked: ClockedQueue, source: str, intent: bool, restored: bool, cause: str
) -> None:
    queue = clocked
    job = unknown(queue, "lint-fix", intent=intent, deadline_s=1.0)
    if restored:
        queue.client.hset(f"job:{job.job_id}", "restored_fence", job.fence)
    queue.wait(1001 - round(queue.contract.timings.margin_s * 1000))
    answer = queue.store.reconcile(job.job_id, "retry", actor="ada", reason="a repeat is safe", source=source)
    assert answer == ("moved", "expired")
    assert queue.record(job.job_id)["cause"] == cause
    (line,) = (json.loads(line) for key in queue.client.keys("failed:*") for line in queue.client.lrange(key, 0, -1))
    assert (line["reason"], line["cause"]) == ("expired", cause)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (done_answer(done=True), "succeeded"),
        (done_answer(done=True, effects=1), "succeeded"),
        (done_answer(done=False), "ready"),
        (done_answer(done=False, effects=0), "ready"),
    ],
)
def test_the_provider_settles_what_the_ledger_can_not(
    queue: OpenQueue, provider: Provider, answer: Answer, state: str
) -> None:
    provider.answer = answer
    job = unknown(queue, idempotency_key="order/4711?x=1&y=%2F#z")
    assert turn(reconciler(queue, provider)) == 1
    assert queue.state(job.job_id) == state
    assert provider.asked == ["order/4711?x=1&y=%2F#z"]
    (entry,) = queue.log("reconcile")
    assert (entry["actor"], entry["source"]) == ("http", "http")
    assert entry["note"].startswith("the provider says that it was")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda handler: handler.say(500, b'{"done": false}'), "it answered 500"),
        (lambda handler: handler.say(404, b'{"done": false}'), "it answered 404"),
        (lambda handler: handler.say(302, b"", Location="/elsewhere"), "it answered 302"),
        (lambda handler: handler.say(200, b"<html>done: false</html>"), "its answer is not JSON"),
        (lambda handler: handler.say(200, b"\xff\xfe\x00"), "its answer is not JSON"),
        (lambda handler: handler.say(200, b""), "its answer is not JSON"),
        (done_answer(), "its answer does not say whether it was done"),
        (done_answer(done="false"), "its answer does not say whether it was done"),
        (done_answer(done=0), "its answer does not say whether it was done"),
        (lambda handler: handler.say(200, b"[false]"), "its answer does not say whether it was done"),
        (done_answer(done=False, effects=1), "its answer contradicts itself"),
        (done_answer(done=True, effects=0), "its answer contradicts itself"),
        (done_answer(done=True, effects="many"), "its answer contradicts itself"),
        (lambda handler: handler.say(200, b'{"done": false}' + b" " * 70_000), "its answer is longer than 65536 bytes"),
        (lambda handler: handler.say(200, b"[" * 60_000), "its answer is not JSON"),
        (hang, "no answer within 0.5 s"),
        (drip, "no answer within 0.5 s"),
        (drop, "no answer: RemoteProtocolError"),
    ],
)
def test_whatever_else_it_answers_is_unclear(provider: Provider, answer: Answer, why: str) -> None:
    provider.answer = answer
    found = asked(provider.url)
    assert found.known is Known.UNCLEAR
    assert found.why in (why, "no answer: ReadTimeout", "no answer: ReadError")
    assert found.why == why or answer in (hang, drop)


def test_nobody_there_is_unclear() -> None:
    assert asked("http://127.0.0.1:1/{key}") == Finding(Known.UNCLEAR, "no answer: ConnectError")


def test_what_nobody_can_tell_stays_unknown_and_is_asked_again_ever_more_rarely(
    queue: OpenQueue, provider: Provider
) -> None:
    provider.answer = hang
    job = unknown(queue)
    now = [0.0]
    one = Reconciler(
        queue.store,
        ReconcileSettings(http_url=provider.url, after_s=0.001, ask_again_s=30, ask_again_max_s=50, http_timeout_s=0.1),
        monotonic=lambda: now[0],
    )
    for at, times in ((0, 1), (29, 1), (31, 2), (80, 2), (82, 3), (131, 3), (133, 4)):
        now[0] = at
        assert turn(one) == 0
        assert len(provider.asked) == times, at
    assert queue.state(job.job_id) == "unknown"
    assert queue.log("reconcile") == []
    provider.answer = done_answer(done=True)
    now[0] = 1000
    assert turn(one) == 1
    assert queue.state(job.job_id) == "succeeded"


def test_two_effects_for_one_key_are_a_confirmed_duplicate(queue: OpenQueue, provider: Provider) -> None:
    provider.answer = done_answer(done=True, effects=2)
    job = unknown(queue)
    assert turn(reconciler(queue, provider)) == 1
    assert queue.state(job.job_id) == "succeeded"
    assert queue.store.observe().gate.duplicates_unacknowledged == 1
    (entry,) = queue.log("duplicate")
    assert "http: 2 effects" in entry["note"]


def test_a_job_is_left_to_its_worker_until_it_was_unknown_for_long_enough(queue: OpenQueue, provider: Provider) -> None:
    job = unknown(queue)
    assert turn(reconciler(queue, provider, after_s=3600)) == 0
    assert provider.asked == []
    assert queue.state(job.job_id) == "unknown"


def test_no_more_are_asked_about_in_a_turn_than_allowed_and_all_in_the_end(
    queue: OpenQueue, provider: Provider
) -> None:
    jobs = [unknown(queue) for _ in range(5)]
    one = reconciler(queue, provider, asks_a_turn=2)
    assert [turn(one) for _ in range(4)] == [2, 2, 1, 0]
    assert {queue.state(job.job_id) for job in jobs} == {"succeeded"}


def test_a_verdict_about_an_earlier_start_is_stale(queue: OpenQueue, provider: Provider) -> None:
    """While the provider was asked, a person let the job run again, and its second worker vanished too."""
    job = unknown(queue)

    def meanwhile(handler: Handler) -> None:
        queue.store.reconcile(job.job_id, "retry", actor="ada", reason="not done", source="person")
        again = queue.claimed("w2")
        queue.store.intent("w2", again.job_id, again.fence)
        queue.settle(again, Outcome.UNKNOWN, worker="w2")
        done_answer(done=False)(handler)

    provider.answer = meanwhile
    assert turn(reconciler(queue, provider, http_timeout_s=5)) == 0
    assert queue.state(job.job_id) == "unknown"
    assert [entry["actor"] for entry in queue.log("reconcile")] == ["ada"]


def test_blocked_jobs_are_nobodys_but_a_persons(queue: OpenQueue, provider: Provider) -> None:
    job = unknown(queue)
    queue.store.reconcile(job.job_id, "block", actor="ada", reason="look at it", source="person")
    assert turn(reconciler(queue, provider)) == 0
    assert (queue.state(job.job_id), provider.asked) == ("blocked", [])


def test_a_decision_about_a_blocked_job_reconciles_no_unknown_one(queue: OpenQueue) -> None:
    job = unknown(queue)
    queue.store.reconcile(job.job_id, "block", actor="ada", reason="look at it", source="person")
    assert queue.client.hget("counters", "unknown_reconciled") == "1"
    queue.store.reconcile(job.job_id, "failed", actor="ada", reason="it was never wanted", source="person")
    assert queue.client.hget("counters", "unknown_reconciled") == "1"


def test_unknown_jobs_are_given_in_ranges_the_longest_unknown_first(queue: OpenQueue) -> None:
    ids = []
    for number in range(3):
        ids.append(unknown(queue).job_id)
        queue.client.zadd("queue:unknown", {ids[-1]: 1000 + number})

    def given(**arguments: int) -> list[str]:
        return [row["id"] for row in queue.store._call("unresolved", arguments)["rows"]]

    assert given() == ids
    assert given(offset=1) == ids[1:]
    assert given(limit=2) == ids[:2]
    assert given(offset=1, limit=1) == ids[1:2]


def test_a_person_can_have_one_job_asked_about_now(queue: OpenQueue, provider: Provider) -> None:
    job, other = unknown(queue), unknown(queue)
    one = reconciler(queue, provider, after_s=3600)
    answer, finding = asyncio.run(one.one(job.job_id, "ann: the customer calls"))
    assert (answer, finding and finding.known) == (Reconciled("moved", "succeeded"), Known.DONE)
    assert queue.state(other.job_id) == "unknown"
    assert queue.log("reconcile")[0]["note"].endswith("(asked by ann: the customer calls)")
    assert asyncio.run(one.one(job.job_id, "ann"))[0] == Reconciled("refused", "succeeded")
    assert asyncio.run(one.one("no-such", "ann"))[0] == Reconciled("gone", "gone")
    provider.answer = hang
    assert asyncio.run(one.one(other.job_id, "ann"))[0] == Reconciled("unclear", "unknown")


def test_not_done_is_believed_early_only_where_a_repeat_is_safe(queue: OpenQueue, provider: Provider) -> None:
    provider.answer = done_answer(done=False)
    unsafe, keyed = unknown(queue), unknown(queue, "lint-fix")
    early = reconciler(queue, provider, after_s=3600)
    answer, finding = asyncio.run(early.one(unsafe.job_id, "ann"))
    assert answer == Reconciled("unclear", "unknown")
    assert finding is not None
    assert finding.why.endswith("but a call may be under way until it has been unknown for 3600 s")
    assert asyncio.run(early.one(keyed.job_id, "ann"))[0] == Reconciled("moved", "ready")
    assert asyncio.run(reconciler(queue, provider).one(unsafe.job_id, "ann"))[0] == Reconciled("moved", "ready")


def test_nobody_but_a_person_repeats_a_job_whose_class_is_declared_no_more(queue: OpenQueue) -> None:
    job = unknown(queue, "send-mail")
    narrow = queue.contract.model_copy(
        update={"classes": {name: one for name, one in queue.contract.classes.items() if name != "send-mail"}}
    )
    queue.store.apply_settings(narrow.for_redis(), narrow.digest(), "ada", "no more mail")
    assert turn(reconciler(queue)) == 0
    assert by_ledger(queue.store, job.job_id) == Reconciled("moved", "blocked")


def test_the_ledger_is_no_witness_for_what_a_snapshot_missed(queue: OpenQueue) -> None:
    job = unknown(queue, intent=False)
    fence = queue.record(job.job_id)["fence"]
    queue.client.hset(f"job:{job.job_id}", "restored_fence", fence)
    (row,) = queue.store.unresolved()["rows"]
    finding = asyncio.run(LedgerResolver().ask(Unknown.of(row)))
    assert finding == Finding(Known.UNCLEAR, "its call may have happened and its class is unsafe to repeat")
    assert turn(reconciler(queue)) == 0


def test_without_settings_nobody_knows_what_a_repeat_does(queue: OpenQueue) -> None:
    unknown(queue, "lint-fix")
    contract = queue.client.hgetall("queue:settings")
    queue.client.delete("queue:settings")
    (row,) = queue.store.unresolved()["rows"]
    assert row["effects"] == "unsafe"
    queue.client.hset("queue:settings", mapping=contract)


def test_a_name_among_the_unknown_whose_record_says_otherwise_is_nobodys_question(queue: OpenQueue) -> None:
    job, ready = unknown(queue), queue.accepted()
    queue.client.zadd("queue:unknown", {"gone": 1, ready: 2})
    assert [row["id"] for row in queue.store.unresolved()["rows"]] == [job.job_id]
    queue.client.zrem("queue:unknown", "gone", ready)


def test_finding_of_reads_nothing_else() -> None:
    assert finding_of(b'{"done": true, "effects": 3}').times == 3
    assert finding_of(b'{"done": true, "effects": true}').known is Known.UNCLEAR
    assert finding_of(b'{"done": false, "more": 1}').known is Known.REPEATABLE
