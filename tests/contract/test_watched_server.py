"""A wrong password or a right that is missing is in a service's log unasked: once when it begins, once when it ends."""

from __future__ import annotations

import asyncio
import json
import queue as queues
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import structlog

from sluicegate.async_producer import AsyncProducer
from sluicegate.http_api import JobsApi, Waits
from sluicegate.store import Store
from tests.http_serving import ServedQueue
from tests.queues import OpenQueue, OpenQueueFunction

WITHIN_S = 60.0
WRONG, RIGHT = "a-s3cret-of-yesterday", "a-s3cret-of-today"
ALL = ("~*", "&*", "+@all")
# What it says in its log when the server fails it, and when that is over.
SERVICES = {
    "exporter": ("queue_unreadable", "queue_readable_again"),
    "queue": ("store_unavailable", "store_available"),
}
FAULTS = {
    "a wrong password": (f">{RIGHT}", *ALL),
    "no function": (f">{WRONG}", *ALL, "-fcall", "-fcall_ro", "-eval", "-eval_ro", "-evalsha", "-evalsha_ro"),
    "no key": (f">{WRONG}", "~elsewhere:*", "&*", "+@all"),
}


class Service:
    """Run a service that nobody asks, and hold what it says in its log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.said: list[dict[str, Any]] = []
        self._lines: queues.Queue[str] = queues.Queue()
        assert process.stderr is not None
        threading.Thread(target=self._read, args=(process.stderr,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)

    def until(self, event: str) -> dict[str, Any]:
        """Read on until it says this."""
        while True:
            self.said.append(json.loads(self._lines.get(timeout=WITHIN_S)))
            if self.said[-1]["event"] == event:
                return self.said[-1]


def names_password(event: Mapping[str, Any]) -> bool:
    text = json.dumps(event)
    return "WRONGPASS" in text or "invalid username-password pair" in text


@contextmanager
def serving(repository: Path, part: str, url: str) -> Iterator[Service]:
    command = [sys.executable, "-m", "sluicegate", part, "serve", "--port", "0", "--redis-url", url]
    process = subprocess.Popen(command, cwd=repository, stderr=subprocess.PIPE, text=True)
    try:
        yield Service(process)
    finally:
        process.kill()
        process.wait(WITHIN_S)


def allow(queue: OpenQueue, *rules: str) -> None:
    queue.client.execute_command("ACL", "SETUSER", "service", "reset", "on", *rules)


@pytest.fixture
def guarded(queue: OpenQueue) -> Iterator[OpenQueue]:
    yield queue
    queue.client.execute_command("ACL", "DELUSER", "service")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", SERVICES)
def test_a_service_that_nobody_asks_says_that_its_password_is_wrong_and_when_it_is_right(
    guarded: OpenQueue, repository: Path, part: str
) -> None:
    allow(guarded, *FAULTS["a wrong password"])
    begins, ends = SERVICES[part]
    with serving(repository, part, guarded.url.replace("redis://", f"redis://service:{WRONG}@")) as service:
        # A first look that takes too long on a busy machine says so before.
        while not names_password(service.until(begins)):
            pass
        allow(guarded, f">{WRONG}", *ALL)
        service.until(ends)
    assert sum(names_password(event) for event in service.said) == 1
    assert [event["event"] for event in service.said].count(ends) == 1
    assert WRONG not in json.dumps(service.said)


def test_a_queue_that_is_not_open_is_named_by_the_service_that_takes_its_jobs(
    guarded: OpenQueue, repository: Path
) -> None:
    guarded.client.flushall()
    with serving(repository, "queue", guarded.url) as service:
        assert service.until("queue_not_open")["queue"] == "default"


async def watched(api: JobsApi, looks: int) -> None:
    """Let a service look so often and a little more."""
    seen = asyncio.Semaphore(0)
    look = api._look

    async def counted() -> Any:
        answer = await look()
        seen.release()
        return answer

    api._look = counted  # type: ignore[method-assign]  # to see when it has looked
    task = asyncio.create_task(api.watch(0.001))
    try:
        async with asyncio.timeout(WITHIN_S):
            for _ in range(looks):
                await seen.acquire()
    finally:
        task.cancel()
        api._look = look  # type: ignore[method-assign]


@pytest.mark.parametrize("fault", FAULTS)
def test_looks_say_a_failure_once_and_its_end_once(guarded: OpenQueue, fault: str) -> None:
    store = Store.connect(guarded.url.replace("redis://", f"redis://service:{WRONG}@"))
    api = JobsApi(store, AsyncProducer(store), Waits())

    async def scenario() -> None:
        allow(guarded, *FAULTS[fault])
        await watched(api, 3)
        assert [event["event"] for event in said] == ["store_unavailable"]
        allow(guarded, f">{WRONG}", *ALL)
        await watched(api, 3)

    with structlog.testing.capture_logs() as said:
        asyncio.run(scenario())
    store.close()
    assert [event["event"] for event in said] == ["store_unavailable", "store_available"]
    assert WRONG not in json.dumps(said)


def test_what_is_refused_to_a_request_alone_is_not_over_because_a_look_is_answered(
    open_queue: OpenQueueFunction,
) -> None:
    """Under a user who may call the functions, and not do all that they do."""
    queue = open_queue(checked=False)
    allow(queue, f">{WRONG}", *ALL, "-hset")
    store = Store.connect(queue.url.replace("redis://", f"redis://service:{WRONG}@"))
    with structlog.testing.capture_logs() as said, ServedQueue(store) as served:
        for number in range(3):
            assert served.post(f"k{number}").status_code == 503
            assert served.client.get("/readyz").status_code == 200
        assert [event["event"] for event in said] == ["store_unavailable"]
        allow(queue, f">{WRONG}", *ALL)
        assert served.post("k9").status_code == 202
    store.close()
    queue.client.execute_command("ACL", "DELUSER", "service")
    assert [event["event"] for event in said] == ["store_unavailable", "store_available"]


def test_an_outage_is_said_though_a_request_was_refused_by_itself_before(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False)
    allow(queue, f">{WRONG}", *ALL, "-hset")
    store = Store.connect(queue.url.replace("redis://", f"redis://service:{WRONG}@"))
    with structlog.testing.capture_logs() as said, ServedQueue(store) as served:
        assert served.post("k1").status_code == 503
        allow(queue, *FAULTS["no function"])
        assert served.client.get("/readyz").status_code == 503
        allow(queue, f">{WRONG}", *ALL)
        assert served.client.get("/readyz").status_code == 200
    store.close()
    queue.client.execute_command("ACL", "DELUSER", "service")
    assert [event["event"] for event in said] == ["store_unavailable", "store_unavailable", "store_available"]


def test_a_look_that_fails_for_an_unforeseen_reason_is_not_the_last(
    queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks() -> int:
        monkeypatch.undo()
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(queue.store, "server_time_ms", breaks)
    api = JobsApi(queue.store, AsyncProducer(queue.store), Waits())
    with structlog.testing.capture_logs() as said:
        asyncio.run(watched(api, 2))
    assert [event["event"] for event in said] == ["look_failed"]


def test_a_service_that_may_call_nothing_is_not_ready(guarded: OpenQueue) -> None:
    allow(guarded, *FAULTS["no function"])
    store = Store.connect(guarded.url.replace("redis://", f"redis://service:{WRONG}@"))
    with ServedQueue(store) as served:
        assert served.client.get("/readyz").status_code == 503
    store.close()
