"""The world outside of tortured queues behaves as it is told, and writes down what was asked of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from drill.runs_torture import outside as world
from drill.runs_torture.outside import Hook, Outside, Post, create_app

NOTIFICATION = {"groupLabels": {"alertname": "Any", "queue": "mill"}, "alerts": []}


@asynccontextmanager
async def served(log: Path, app: Any = None) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app or create_app(Outside(log, 7)))
    async with httpx.AsyncClient(transport=transport, base_url="http://outside") as client:
        yield client


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def in_world(act: Callable[[httpx.AsyncClient], Awaitable[None]], log: Path) -> None:
    async def run() -> None:
        async with served(log) as client:
            await act(client)

    asyncio.run(run())


async def behave(client: httpx.AsyncClient, hook: Hook) -> None:
    await client.put("/mill", json={"provider_fails": True, "hook": hook.value})


async def fix(client: httpx.AsyncClient) -> int:
    return (await client.post("/mill/fix", headers={"Idempotency-Key": "run-1/fix"})).status_code


def test_a_hook_mends_its_own_queue_alone(tmp_path: Path) -> None:
    async def act(client: httpx.AsyncClient) -> None:
        await behave(client, Hook.MENDS)
        await client.put("/other", json={"provider_fails": True, "hook": "mends"})
        assert (await client.post("/mill/v1/complete")).status_code == 503
        assert (await client.get("/mill/fix")).status_code == 503
        assert await fix(client) == 200
        assert (await client.get("/mill/fix")).status_code == 200
        assert (await client.post("/mill/v1/complete")).status_code == 200
        assert (await client.post("/other/v1/complete")).status_code == 503

    in_world(act, tmp_path / "log")
    (line,) = lines(tmp_path / "log")
    assert (line["kind"], line["queue"], line["key"], line["mended"]) == ("fix", "mill", "run-1/fix", True)


def test_a_busy_hook_mends_at_its_third_call_and_a_useless_one_never(tmp_path: Path) -> None:
    async def act(client: httpx.AsyncClient) -> None:
        await behave(client, Hook.BUSY)
        assert [await fix(client) for _ in range(3)] == [503, 503, 200]
        await behave(client, Hook.USELESS)
        assert await fix(client) == 200
        assert (await client.get("/mill/fix")).status_code == 200
        assert (await client.post("/mill/v1/complete")).status_code == 503

    in_world(act, tmp_path / "log")


def test_a_hook_may_mend_and_never_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_LOST_AFTER_S", 60.0)

    async def act(client: httpx.AsyncClient) -> None:
        await behave(client, Hook.LOSES_ANSWER)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await fix(client)
        assert (await client.get("/mill/fix")).status_code == 200

    in_world(act, tmp_path / "log")


@pytest.mark.parametrize(
    ("post", "told", "delivered"),
    [(Post.CARRIED, 202, 1), (Post.DROPPED, 503, 0), (Post.DOUBLED, 202, 2), (Post.UNANSWERED, 503, 1)],
)
def test_the_postman_carries_drops_doubles_or_does_not_answer(
    post: Post, told: int, delivered: int, tmp_path: Path
) -> None:
    got: list[str] = []

    async def run() -> None:
        carrying = Outside(tmp_path / "log", 7)

        async def deliver(door: str, body: bytes) -> int:
            assert json.loads(body) == NOTIFICATION
            got.append(door)
            return 202

        carrying._deliver = deliver  # type: ignore[method-assign]  # the door itself is another test's
        async with served(tmp_path / "log", create_app(carrying)) as client:
            await client.put("/route", json={"post": post.value, "doors": {"mill": ["http://a", "http://b"]}})
            assert (await client.post("/relay", json=NOTIFICATION)).status_code == told

    asyncio.run(run())
    assert len(got) == delivered
    assert len(set(got)) == delivered
    (line,) = lines(tmp_path / "log")
    assert (line["kind"], line["post"]) == ("post", post.value)


def test_a_notification_of_no_queue_is_nobodys(tmp_path: Path) -> None:
    async def act(client: httpx.AsyncClient) -> None:
        assert (await client.post("/relay", content=b"garbage")).status_code == 503

    in_world(act, tmp_path / "log")


def test_a_door_that_is_shut_is_answered_503(tmp_path: Path) -> None:
    async def act(client: httpx.AsyncClient) -> None:
        await client.put("/route", json={"post": "carried", "doors": {"mill": ["http://127.0.0.1:9"]}})
        assert (await client.post("/relay", json=NOTIFICATION)).status_code == 503

    in_world(act, tmp_path / "log")
