"""A loop that watches a gate outlives every single turn."""

from __future__ import annotations

import asyncio

import pytest

from automation.looping import Loop
from sluicegate.errors import StoreUnavailable


def test_an_outage_is_said_once_when_it_begins_and_once_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    turns = 0
    enough = asyncio.Event()

    async def turn() -> None:
        nonlocal turns
        turns += 1
        if turns in (2, 3, 4):
            raise StoreUnavailable("gone")
        if turns == 6:
            enough.set()

    async def scenario() -> None:
        loop = Loop("watching", 0.001, turn)
        await loop.stop()
        await loop.start()
        await loop.start()
        await asyncio.wait_for(enough.wait(), 5)
        await loop.stop()
        await loop.stop()
        before = turns
        await asyncio.sleep(0.02)
        assert turns == before

    asyncio.run(scenario())
    said = capsys.readouterr().out
    assert said.count("store_unavailable") == 1
    assert said.count("store_available") == 1


def test_a_turn_that_breaks_is_logged_with_its_trace_and_the_loop_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    turns = 0
    enough = asyncio.Event()

    async def turn() -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise KeyError("a bug")
        enough.set()

    async def scenario() -> None:
        loop = Loop("watching", 0.001, turn)
        await loop.start()
        await asyncio.wait_for(enough.wait(), 5)
        await loop.stop()

    asyncio.run(scenario())
    assert "turn_failed" in capsys.readouterr().out


def test_turns_keep_their_rhythm_and_a_long_one_delays_only_itself() -> None:
    began: list[float] = []
    enough = asyncio.Event()

    async def turn() -> None:
        began.append(asyncio.get_running_loop().time())
        if len(began) == 6:
            enough.set()
        if len(began) == 1:
            await asyncio.sleep(0.25)

    async def scenario() -> float:
        loop = Loop("watching", 0.05, turn)
        started = asyncio.get_running_loop().time()
        await loop.start()
        await asyncio.wait_for(enough.wait(), 5)
        await loop.stop()
        return started

    started = asyncio.run(scenario())
    assert began[1] - began[0] >= 0.25
    # What was missed in the meantime is not made up for in a burst.
    assert began[5] - started >= 0.25 + 4 * 0.05
