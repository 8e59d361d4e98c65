"""What happens is told to each receiver on its own, in order, once it can; a repeat has the same key."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from automation.metrics import AutomationMetrics
from automation.notices import sender as sending
from automation.notices.sender import Sender
from automation.notices.watch import Watch
from sluicegate.clock import Clock, SystemClock
from sluicegate.job import Outcome
from sluicegate.notice import NoticeKind
from sluicegate.notice_board import NoticeBoard
from sluicegate.service_settings import ReceiverKind, ReceiverSettings
from tests.automation_parts import ON_BOTH, Parts, quick
from tests.contract.gate_actors import claimed_run, committed, opened
from tests.queues import OpenQueue, OpenQueueFunction
from tests.small_server import Handler, served

Seen = tuple[str, str, dict[str, str], Any]


@pytest.fixture
def board(queue: OpenQueue) -> Iterator[NoticeBoard]:
    """Return a board on which one receiver has begun to listen."""
    listening = NoticeBoard.connect(queue.url)
    assert listening.take("ann", "c1", 1000) is None
    yield listening
    listening.close()


def told(board: NoticeBoard, receiver: str = "ann") -> list[tuple[str, str, str]]:
    """Take everything that waits for a receiver: kind, run, reason or state."""
    found = []
    while (taken := board.take(receiver, "c1", 1000)) is not None:
        assert taken.notice is not None
        found.append((taken.notice.kind.value, taken.notice.run, taken.notice.reason or taken.notice.state))
        board.told(receiver, taken.notice_id)
    return found


# --- what is written ---


def test_a_recovery_is_told_from_its_opening_to_its_rollback(queue: OpenQueue, board: NoticeBoard) -> None:
    fence = claimed_run(queue)
    committed(queue, fence, "journal", "r1", phase="paged", text="waits for a named person", verb="fix")
    committed(queue, fence, "rollback", "r2")
    committed(queue, queue.store.claim_run("e1", "", "").fence, "finish", "r3")
    queue.store.order("open", "ada", "looked at it")
    assert told(board) == [
        ("started", "run-1", "person"),
        ("holding", "run-1", "fix"),
        ("rolled_back", "run-1", "canary_failed"),
        ("pinned", "run-1", "rolled_back"),
        ("ended", "run-1", "canary_failed"),
        ("released", "", "rolled_back"),
    ]


def test_a_move_that_leaves_the_pin_tells_of_none(queue: OpenQueue, board: NoticeBoard) -> None:
    queue.store.order("hold", "ada", "first")
    queue.store.order("drain", "bob", "second")
    assert told(board) == [("pinned", "", "operator")]
    assert board.still_pinned() is True
    queue.store.order("open", "ada", "enough")
    assert board.still_pinned() is False
    assert [kind for kind, _, _ in told(board)] == ["still_pinned", "released"]


def test_an_audit_is_a_run_of_its_own(queue: OpenQueue, board: NoticeBoard) -> None:
    queue.store.confirm_duplicate("k1", actor="ada", note="seen twice")
    assert opened(queue, runbook="rollback-and-audit", run="audit-1").answer == "moved"
    assert ("started", "audit-1", "controller") in told(board)


def test_more_unknown_jobs_are_told_once_and_fewer_lower_what_counts(queue: OpenQueue, board: NoticeBoard) -> None:
    def make_unknown() -> str:
        job = queue.started()
        queue.settle(job, Outcome.UNKNOWN)
        return job.job_id

    first = make_unknown()
    assert board.rising() is True
    assert board.rising() is False
    make_unknown()
    assert board.rising() is True
    queue.store.reconcile(first, "failed", actor="ada", reason="asked", source="person")
    assert board.rising() is False
    make_unknown()
    assert board.rising() is True
    assert told(board) == [("unknown_rising", "", "1"), ("unknown_rising", "", "2"), ("unknown_rising", "", "2")]


# --- who is told ---


def test_each_receiver_has_its_own_place_and_begins_when_it_is_first_asked_for(
    queue: OpenQueue, board: NoticeBoard
) -> None:
    queue.store.order("hold", "ada", "first")
    assert board.take("bob", "c1", 1000) is None
    queue.store.order("open", "ada", "second")
    assert [kind for kind, _, _ in told(board, "bob")] == ["released"]
    assert board.waiting("ann").count == 2
    assert [kind for kind, _, _ in told(board, "ann")] == ["pinned", "released"]
    assert (board.waiting("ann").count, board.waiting("nobody").count) == (0, 0)


def test_what_was_not_told_is_the_next_again_and_another_may_take_it_after_a_while(
    queue: OpenQueue, board: NoticeBoard
) -> None:
    queue.store.order("hold", "ada", "first")
    queue.store.order("open", "ada", "second")
    taken = board.take("ann", "c1", 1000)
    assert taken is not None
    assert board.take("ann", "c1", 1000) == taken
    other = board.take("ann", "c2", 60_000)
    assert other is not None
    assert other.notice_id != taken.notice_id, "what c1 holds is not taken from it at once"
    time.sleep(0.02)
    board.told("ann", other.notice_id)
    assert board.take("ann", "c2", 10) == taken, "c1 has said nothing for longer"
    assert board.waiting("ann").count == 1


def test_a_stream_that_somebody_wrote_over_is_one_again(queue: OpenQueue, board: NoticeBoard) -> None:
    queue.client.set("notices", "text")
    assert board.take("ann", "c1", 1000) is None
    queue.client.xadd("notices", {"not": "ours"})
    queue.store.order("hold", "ada", "first")
    taken = board.take("ann", "c1", 1000)
    assert taken is not None
    assert taken.notice is None
    board.told("ann", taken.notice_id)
    assert [kind for kind, _, _ in told(board)] == ["pinned"]


# --- how they are told ---


class World:
    """Answer as a test says, and keep what was asked: method, path, headers, body."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.answers: list[tuple[int, float]] = []
        self.listed: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.release = threading.Event()

    def bodies(self, method: str = "POST") -> list[Any]:
        return [body for asked, _, _, body in self.seen if asked == method]


@contextmanager
def receiver(world: World) -> Iterator[str]:
    class Asked(Handler):
        def respond(self) -> None:
            body = json.loads(self.body() or "null")
            world.seen.append((self.command, self.path, dict(self.headers.items()), body))
            status, after_s = world.answers.pop(0) if world.answers else (200, 0.0)
            world.release.wait(after_s)
            if self.command == "GET":
                rows = world.comments if "/comments" in self.path else world.listed
                self.answer(status, json.dumps(rows).encode())
                return
            self.answer(status, b"{}")

    with served(Asked) as address:
        yield f"http://{address}"
        world.release.set()


async def tell(
    queue: OpenQueue, settings: ReceiverSettings, turns: int = 1, consumer: str = "c1", clock: Clock | None = None
) -> AutomationMetrics:
    """Let a sender tell all that waits."""
    board, metrics = NoticeBoard.connect(queue.url), AutomationMetrics()
    sender = Sender("ann", settings, board, consumer, lambda: True, metrics, clock or SystemClock())
    try:
        for _ in range(turns):
            await sender.turn()
            sender._not_before = 0.0  # the wait itself is another test's
    finally:
        await sender.stop()
        board.close()
    return metrics


def outcomes(metrics: AutomationMetrics, outcome: str) -> float:
    """Give how many tries came to this."""
    found = metrics.registry.get_sample_value(
        "sluicegate_automation_notices_total", {"receiver": "ann", "outcome": outcome}
    )
    return found or 0.0


def hooked(url: str, **changes: Any) -> ReceiverSettings:
    return ReceiverSettings(kind=ReceiverKind.WEBHOOK, url=url, **changes)


def test_a_receiver_is_told_in_order_and_each_once(queue: OpenQueue, board: NoticeBoard) -> None:
    world = World()
    queue.store.order("hold", "ada", "first")
    queue.store.order("open", "ada", "second")
    with receiver(world) as url:
        asyncio.run(tell(queue, hooked(url), turns=2))
    assert [body["kind"] for body in world.bodies()] == ["pinned", "released"]
    assert board.waiting("ann").count == 0


@pytest.mark.parametrize("status", [500, 503, 429, 401, 404])
def test_what_may_pass_is_tried_again_under_the_same_key(queue: OpenQueue, board: NoticeBoard, status: int) -> None:
    world = World()
    world.answers = [(status, 0.0), (status, 0.0)]
    queue.store.order("hold", "ada", "first")
    queue.store.order("open", "ada", "second")
    with receiver(world) as url:
        asyncio.run(tell(queue, hooked(url), turns=4))
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in world.seen]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert [body["kind"] for body in world.bodies()] == ["pinned"] * 3 + ["released"]


def test_one_that_times_out_after_accepting_is_told_again_under_the_same_key(
    queue: OpenQueue, board: NoticeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_ANSWERS_WITHIN_S", 1.0)
    world = World()
    world.answers = [(200, 30.0)]
    queue.store.order("hold", "ada", "first")
    with receiver(world) as url:
        asyncio.run(tell(queue, hooked(url), turns=2))
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in world.seen}
    assert (len(world.seen), len(keys)) == (2, 1)
    assert board.waiting("ann").count == 0


def test_a_dead_one_keeps_its_notices_and_a_process_that_died_leaves_them_to_the_next(
    queue: OpenQueue, board: NoticeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_HELD_MS", 10)
    queue.store.order("hold", "ada", "first")
    metrics = asyncio.run(tell(queue, hooked("http://127.0.0.1:9"), consumer="dies"))
    assert outcomes(metrics, "again") == 1
    assert board.waiting("ann").count == 1
    time.sleep(0.05)
    world = World()
    with receiver(world) as url:
        asyncio.run(tell(queue, hooked(url), consumer="next"))
    assert [body["kind"] for body in world.bodies()] == ["pinned"]


def test_one_that_says_it_has_it_and_never_stops_talking_has_it(
    queue: OpenQueue, board: NoticeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_ANSWERS_WITHIN_S", 2.0)
    told_of: list[str] = []
    over = threading.Event()

    class Talks(Handler):
        def respond(self) -> None:
            told_of.append(json.loads(self.body())["kind"])
            self.send_response(200)
            self.send_header("Content-Length", str(10**9))
            self.end_headers()
            with suppress(OSError):
                while not over.is_set():
                    self.wfile.write(b"x" * 1024)
                    over.wait(0.01)

    queue.store.order("hold", "ada", "first")
    queue.store.order("open", "ada", "second")
    with served(Talks) as address:
        began = time.monotonic()
        asyncio.run(tell(queue, hooked(f"http://{address}")))
        took_s = time.monotonic() - began
        over.set()
    assert told_of == ["pinned", "released"]
    assert board.waiting("ann").count == 0
    assert took_s < 2


def test_a_list_without_an_end_is_read_so_far_and_no_further(
    queue: OpenQueue, board: NoticeBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_LONGEST_LIST_BYTES", 100_000)
    sent = 0

    class Endless(Handler):
        def respond(self) -> None:
            nonlocal sent
            self.send_response(200)
            self.send_header("Content-Length", str(10**9))
            self.end_headers()
            with suppress(OSError):
                while sent < 50_000_000:
                    self.wfile.write(b"[" * 10_000)
                    sent += 10_000

    opened(queue, trigger="person")
    with served(Endless) as address:
        metrics = asyncio.run(tell(queue, github(f"http://{address}", tmp_path)))
    assert outcomes(metrics, "again") == 1
    assert sent < 20_000_000


def test_a_token_that_no_header_can_hold_waits_for_its_file(
    queue: OpenQueue, board: NoticeBoard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    token = tmp_path / "token"
    token.write_text("“t0ken”", encoding="utf-8")
    queue.store.order("hold", "ada", "first")
    with receiver(world) as url:
        assert outcomes(asyncio.run(tell(queue, hooked(url, token_file=token))), "again") == 1
        assert world.seen == []
        token.write_text("t0ken")
        assert outcomes(asyncio.run(tell(queue, hooked(url, token_file=token))), "delivered") == 1
    said = capsys.readouterr()
    assert "UnicodeEncodeError" in said.out + said.err
    assert "t0ken" not in said.out + said.err


class Tomorrow(SystemClock):
    """Be a day and a minute ahead."""

    def now_ms(self) -> int:
        return super().now_ms() + 86_460_000


def test_what_is_older_than_a_day_is_told_to_nobody_any_more(queue: OpenQueue, board: NoticeBoard) -> None:
    world = World()
    queue.store.order("hold", "ada", "first")
    with receiver(world) as url:
        metrics = asyncio.run(tell(queue, hooked(url), clock=Tomorrow()))
    assert (world.seen, outcomes(metrics, "refused")) == ([], 1)
    assert board.waiting("ann").count == 0


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_will_never_be_taken_is_said_and_left(queue: OpenQueue, board: NoticeBoard, status: int) -> None:
    world = World()
    world.answers = [(status, 0.0)]
    queue.store.order("hold", "ada", "first")
    queue.store.order("open", "ada", "second")
    with receiver(world) as url:
        asyncio.run(tell(queue, hooked(url)))
    assert [body["kind"] for body in world.bodies()] == ["pinned", "released"]
    assert board.waiting("ann").count == 0


def test_a_retry_after_is_waited_for(queue: OpenQueue, board: NoticeBoard) -> None:
    world = World()

    async def act(url: str) -> float:
        own = NoticeBoard.connect(queue.url)
        sender = Sender("ann", hooked(url), own, "c1", lambda: True, AutomationMetrics(), SystemClock())
        try:
            await sender.turn()
            await sender.turn()
            return sender._not_before - time.monotonic()
        finally:
            await sender.stop()
            own.close()

    class Later(Handler):
        def respond(self) -> None:
            world.seen.append((self.command, self.path, {}, None))
            self.send_response(429)
            self.send_header("Retry-After", "40")
            self.send_header("Content-Length", "0")
            self.end_headers()

    queue.store.order("hold", "ada", "first")
    with served(Later) as address:
        left_s = asyncio.run(act(f"http://{address}"))
    assert 30 < left_s <= 40
    assert len(world.seen) == 1, "nothing is asked before it is time"


def test_who_does_not_lead_tells_nothing(queue: OpenQueue, board: NoticeBoard) -> None:
    world = World()

    async def act(url: str) -> None:
        own = NoticeBoard.connect(queue.url)
        sender = Sender("ann", hooked(url), own, "c1", lambda: False, AutomationMetrics(), SystemClock())
        await sender.turn()
        await sender.stop()
        own.close()

    queue.store.order("hold", "ada", "first")
    with receiver(world) as url:
        asyncio.run(act(url))
    assert world.seen == []


def test_what_it_is_not_told_of_is_passed_over(queue: OpenQueue, board: NoticeBoard) -> None:
    world = World()
    queue.store.order("hold", "ada", "first")
    queue.store.order("open", "ada", "second")
    with receiver(world) as url:
        asyncio.run(tell(queue, hooked(url, tells=(NoticeKind.RELEASED,))))
    assert [body["kind"] for body in world.bodies()] == ["released"]


def test_a_secret_comes_from_its_file_and_is_in_no_log(
    queue: OpenQueue, board: NoticeBoard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    world.answers = [(500, 0.0)]
    address, token = tmp_path / "address", tmp_path / "token"
    token.write_text("t0ken\n")
    queue.store.order("hold", "ada", "first")
    with receiver(world) as url:
        settings = ReceiverSettings(kind=ReceiverKind.WEBHOOK, url_file=address, token_file=token)
        asyncio.run(tell(queue, settings))
        assert world.seen == [], "without its address it is not told yet"
        address.write_text(f"{url}/s3cret/path\n")
        asyncio.run(tell(queue, settings, turns=2))
    assert [headers["Authorization"] for _, _, headers, _ in world.seen] == ["Bearer t0ken"] * 2
    assert world.seen[0][1] == "/s3cret/path"
    said = capsys.readouterr()
    assert "s3cret" not in said.out + said.err
    assert "t0ken" not in said.out + said.err


# --- GitHub knows no key of ours ---


def github(url: str, folder: Path) -> ReceiverSettings:
    token = folder / "token"
    token.write_text("t0ken")
    return ReceiverSettings(kind=ReceiverKind.GITHUB, url=url, token_file=token, repo="acme/queues")


def test_the_first_notice_of_a_run_opens_an_issue(queue: OpenQueue, board: NoticeBoard, tmp_path: Path) -> None:
    world = World()
    opened(queue, trigger="person")
    with receiver(world) as url:
        asyncio.run(tell(queue, github(url, tmp_path)))
    (body,) = world.bodies()
    assert body["labels"] == ["sluicegate", "default:run-1"]
    assert [path.partition("?")[0] for _, path, _, _ in world.seen] == ["/repos/acme/queues/issues"] * 2


def test_a_later_one_is_a_comment_and_one_that_is_there_is_not_said_again(
    queue: OpenQueue, board: NoticeBoard, tmp_path: Path
) -> None:
    world = World()
    world.listed = [{"number": 7, "body": "of another notice"}]
    opened(queue, trigger="person")
    with receiver(world) as url:
        world.answers = [(200, 0.0), (200, 0.0), (502, 0.0)]  # the comment was made, and its answer is lost
        asyncio.run(tell(queue, github(url, tmp_path)))
        (said,) = world.bodies()
        world.comments = [said]
        asyncio.run(tell(queue, github(url, tmp_path)))
    assert len(world.bodies()) == 1
    assert board.waiting("ann").count == 0


@pytest.mark.parametrize("listed", [b"garbage", b'{"message": "no list"}'])
def test_an_answer_that_is_no_list_opens_no_second_issue(
    queue: OpenQueue, board: NoticeBoard, tmp_path: Path, listed: bytes
) -> None:
    asked: list[str] = []

    class Odd(Handler):
        def respond(self) -> None:
            asked.append(self.command)
            self.answer(200, listed)

    opened(queue, trigger="person")
    with served(Odd) as address:
        asyncio.run(tell(queue, github(f"http://{address}", tmp_path)))
    assert asked == ["GET"]
    assert board.waiting("ann").count == 1


# --- in the service ---


def test_a_pin_that_nobody_comes_for_is_told_again_and_again(queue: OpenQueue, board: NoticeBoard) -> None:
    queue.store.order("drain", "ada", "first")
    seen = queue.store.observe()

    async def act() -> None:
        watch = Watch(board, lambda: seen, 0.03, SystemClock())
        for _ in range(3):
            await watch.turn()
            await asyncio.sleep(0.04)

    asyncio.run(act())
    assert [kind for kind, _, _ in told(board)] == ["pinned", "still_pinned", "still_pinned"]


@pytest.mark.timeout(60)
@ON_BOTH
def test_a_slow_receiver_keeps_no_run_waiting(redis_url: str, tmp_path: Path) -> None:
    """Its answers take as long as the whole run; all the same it is told everything."""
    world = World()

    async def scenario(url: str) -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            board = NoticeBoard.connect(redis_url)
            board.take("ann", "c1", 1000)
            sender = Sender(
                "ann", hooked(url), board, "c1", lambda: parts.controller.seen is not None, parts.metrics, SystemClock()
            )
            await sender.start()
            began = time.monotonic()
            run = parts.open_run()
            await parts.until_step(run, "fix")
            parts.approve(run, "fix")
            await parts.until_ended(run, "succeeded")
            took_s = time.monotonic() - began
            assert len(world.seen) == 1, "it has not answered the first one yet"
            assert took_s < 30
            world.release.set()
            await parts.until(lambda: world.bodies()[-1]["kind"] == "reopened", "all are told")
            await sender.stop()
            board.close()

    world.answers = [(200, 60.0)]
    monkey = pytest.MonkeyPatch()
    monkey.setattr(sending, "_ANSWERS_WITHIN_S", 60.0)
    try:
        with receiver(world) as url:
            asyncio.run(scenario(url))
    finally:
        monkey.undo()
    kinds = [body["kind"] for body in world.bodies()]
    assert (kinds[0], kinds[-1]) == ("started", "reopened")
    assert set(kinds[1:-1]) <= {"holding"}, "people are paged where they do not come at once"


def test_another_contract_needs_no_notice(open_queue: OpenQueueFunction) -> None:
    queue = open_queue()
    board = NoticeBoard.connect(queue.url)
    board.take("ann", "c1", 1000)
    other = queue.contract.model_copy(update={"max_running": 3})
    queue.store.apply_settings(other.for_redis(), other.digest(), "ada", "a test")
    assert told(board) == []
    board.close()
