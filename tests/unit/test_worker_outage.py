"""An outage of the store is said once, however its calls overlap."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
import structlog

from sluicegate.clock import SystemClock
from sluicegate.errors import StoreUnavailable
from sluicegate.store_link import StoreLink


def fails() -> None:
    raise StoreUnavailable("gone")


def answers() -> str:
    return "ok"


def after(told: threading.Event, then: Callable[[], object]) -> Callable[[], object]:
    """Give a call that lasts until it is told."""

    def call() -> object:
        assert told.wait(5)
        return then()

    return call


def said(script: Callable[[StoreLink], object]) -> list[str]:
    """Run an async script with a link and give the events it logged."""

    async def run() -> None:
        await script(StoreLink(structlog.get_logger("test"), SystemClock()))  # type: ignore[misc]  # each script is async

    with structlog.testing.capture_logs() as entries:
        asyncio.run(run())
    return [entry["event"] for entry in entries]


async def failed(link: StoreLink, call: Callable[[], object] = fails) -> None:
    with pytest.raises(StoreUnavailable):
        await link.call(call)


def test_many_failures_are_one_outage_and_its_end_is_said_once() -> None:
    async def script(link: StoreLink) -> None:
        for _ in range(3):
            await failed(link)
        for _ in range(3):
            assert await link.call(answers) == "ok"
        await failed(link)

    assert said(script) == ["store_unavailable", "store_available", "store_unavailable"]


def test_an_answer_from_before_the_outage_does_not_end_it() -> None:
    async def script(link: StoreLink) -> None:
        told = threading.Event()
        early = asyncio.ensure_future(link.call(after(told, answers)))
        await asyncio.sleep(0)  # it is under way
        await failed(link)
        told.set()
        await early
        assert link.down
        await failed(link)

    assert said(script) == ["store_unavailable"]


def test_a_failure_from_before_the_end_begins_no_outage() -> None:
    async def script(link: StoreLink) -> None:
        told = threading.Event()
        await failed(link)
        slow = asyncio.ensure_future(failed(link, after(told, fails)))
        await asyncio.sleep(0)  # it is under way
        await link.call(answers)
        told.set()
        await slow
        assert not link.down

    assert said(script) == ["store_unavailable", "store_available"]


def test_a_call_is_repeated_until_it_is_answered_or_its_time_is_up() -> None:
    tries: list[int] = []

    def third() -> str:
        tries.append(1)
        if len(tries) < 3:
            fails()
        return "ok"

    async def script(link: StoreLink) -> None:
        assert await link.until_answered(5, third) == "ok"
        with pytest.raises(StoreUnavailable):
            await link.until_answered(0.2, fails)

    assert said(script)[:2] == ["store_unavailable", "store_available"]
    assert len(tries) == 3
