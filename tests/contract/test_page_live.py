"""The page's stream: one reading for all who watch, soon after a move, and plain about what cannot be read."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from automation.page import routes
from automation.page.feed import Feed
from drill.server import QueueServer
from sluicegate.service_settings import PageSettings
from sluicegate.telemetry import Telemetry
from tests.automation_parts import ON_BOTH, Parts, until
from tests.webhooks import served, still

pytestmark = ON_BOTH

Event = tuple[str, dict[str, Any]]


async def events(client: httpx.AsyncClient) -> AsyncGenerator[Event, None]:
    """Give each event of the stream: its name and its body."""
    async with client.stream("GET", "/live") as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


async def until_title(stream: AsyncGenerator[Event, None], state: str) -> dict[str, Any]:
    async for name, body in stream:
        if name == "reading" and body["title"].startswith(state):
            return body
    raise AssertionError(f"the stream ended before {state}")


async def until_named(stream: AsyncGenerator[Event, None], wanted: str) -> dict[str, Any]:
    async for name, body in stream:
        if name == wanted:
            return body
    raise AssertionError(f"the stream ended without {wanted}")


async def moves_seen(parts: Parts, client: httpx.AsyncClient, count: int) -> list[float]:
    """Move the gate to and fro, and give the seconds until each move was on a page that watches."""
    took = []
    async with aclosing(events(client)) as stream:
        await until_title(stream, "admit")
        for number in range(count):
            order, state = (("drain", "drain"), ("open", "admit"))[number % 2]
            await asyncio.to_thread(parts.store.order, order, "ann", "a test")
            moved = time.monotonic()
            body = await until_title(stream, state)
            took.append(time.monotonic() - moved)
            assert f'data-state="{state}"' in body["parts"]["gate"]
    return sorted(took)


def p95(took: list[float]) -> float:
    return took[max(0, -(-len(took) * 95 // 100) - 1)]


def test_a_move_of_the_gate_is_on_the_page_within_a_second(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            assert p95(await moves_seen(parts, client, 6)) <= 1.0

    asyncio.run(scenario())


@pytest.mark.slow
def test_of_a_hundred_moves_95_are_on_the_page_within_a_second(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> list[float]:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            return await moves_seen(parts, client, 100)

    took = asyncio.run(scenario())
    with capsys.disabled():
        print(f"\nmove to page: median {took[49]:.3f} s, p95 {p95(took):.3f} s, longest {took[-1]:.3f} s")
    assert p95(took) <= 1.0


def test_twenty_who_watch_cost_redis_what_one_does(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            looks = 0
            observe = parts.store.observe

            def counted(timeout_s: float | None = None) -> Telemetry:
                nonlocal looks
                looks += 1
                return observe(timeout_s)

            monkeypatch.setattr(parts.store, "observe", counted)
            first: list[dict[str, Any]] = []

            async def watch() -> None:
                async with aclosing(events(client)) as stream:
                    async for _, body in stream:
                        first.append(body)
                        if len(first) >= 100:
                            return

            started = time.monotonic()
            await asyncio.gather(*(watch() for _ in range(20)))
            rounds = (time.monotonic() - started) / PageSettings().read_every_s
            assert len(first) >= 100
            assert looks <= rounds + 2

    asyncio.run(scenario())


def test_a_redis_that_goes_away_is_said_at_once_and_its_return_too(server: QueueServer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(server.url, tmp_path) as parts, served(parts) as client, aclosing(events(client)) as stream:
            await until_title(stream, "admit")
            server.kill()
            body = await until_named(stream, "unread")
            assert "parts" not in body, "no old figure is sent again"
            assert body["failed"]
            front = await client.get("/")
            assert 'id="unread" class="unread" aria' in front.text
            server.restart()
            body = await until_named(stream, "reading")
            assert body["title"].startswith("drain"), "it kept nothing, so its gate reads as closed"
            assert set(body["parts"]) >= {"gate", "asked"}

    asyncio.run(scenario())


def test_no_more_watch_than_may_and_whoever_leaves_makes_room(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, page=PageSettings(watchers=1)) as client:
            async with aclosing(events(client)) as stream:
                await until_title(stream, "admit")
                assert (await client.get("/live")).status_code == 503

            async def another() -> bool:
                async with client.stream("GET", "/live") as answer:
                    return answer.status_code == 200

            end = time.monotonic() + 10
            while not await another():
                assert time.monotonic() < end

    asyncio.run(scenario())


async def dropped(client: httpx.AsyncClient, after_s: float) -> None:
    """Ask for a stream as a browser does, and vanish without a word."""
    url = client.base_url
    _, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(f"GET /live HTTP/1.1\r\nHost: {url.host}:{url.port}\r\n\r\n".encode())
    await writer.drain()
    await asyncio.sleep(after_s)
    writer.transport.abort()


async def until_one_may_watch(client: httpx.AsyncClient) -> None:
    end = time.monotonic() + 10
    while True:
        async with client.stream("GET", "/live") as answer:
            if answer.status_code == 200:
                return
        assert time.monotonic() < end, "no place is given back"
        await asyncio.sleep(0.05)


def test_many_streams_that_are_dropped_all_make_room_again(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, page=PageSettings(watchers=20)) as client:
            for _ in range(3):
                await asyncio.gather(*(dropped(client, number / 20) for number in range(20)))
                await until_one_may_watch(client)

    asyncio.run(scenario())


def test_one_that_is_dropped_before_its_first_reading_makes_room_and_leaves_nothing_old(
    redis_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, page=PageSettings(watchers=1)) as client:
            await client.get("/")
            await asyncio.to_thread(parts.store.order, "drain", "ann", "meanwhile")
            await asyncio.sleep(PageSettings().read_every_s)
            # Every command waits so long, and the first look at the queue with it.
            await asyncio.to_thread(parts.client.client_pause, 1000, all=True)
            await dropped(client, 0.5)
            front = await client.get("/")
            assert 'data-state="drain"' in front.text
            await until_one_may_watch(client)

    asyncio.run(scenario())


def test_a_stream_ends_after_a_while_so_that_its_page_asks_again_whether_it_may(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "STREAM_S", 1.2)

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client, aclosing(events(client)) as stream:
            names = [name async for name, _ in stream]
            assert set(names) == {"reading"}
            assert 2 <= len(names) <= 8

    asyncio.run(scenario())


def test_while_nobody_watches_only_the_plots_go_on_and_who_comes_sees_nothing_old(
    redis_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            feed = Feed(parts.store, PageSettings())
            await feed.start()
            await until(lambda: len(feed.samples) > 1, "two samples")
            assert feed.state.reading is None
            await feed.stop()

            await client.get("/")
            await asyncio.to_thread(parts.store.order, "drain", "ann", "meanwhile")
            await asyncio.sleep(PageSettings().read_every_s)
            async with aclosing(events(client)) as stream:
                _, first = await anext(stream)
                assert first["title"].startswith("drain")

    asyncio.run(scenario())


def test_a_feed_that_stops_ends_every_watch_and_stops_twice(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        parts = still(redis_url, tmp_path)
        feed = Feed(parts.store, PageSettings())
        await feed.stop()
        feed = Feed(parts.store, PageSettings())
        assert feed.state.reading is None
        versions: list[int] = []

        async def watch() -> None:
            async for state in feed.watch():
                versions.append(state.version)

        watching = asyncio.create_task(watch())
        await feed.now()
        await until(lambda: versions, "the first state")
        await feed.stop()
        await feed.stop()
        await asyncio.wait_for(watching, 5)
        assert versions == [1], "who asks within a round shares it"
        assert feed.watchers == 0
        parts.close()

    asyncio.run(scenario())
