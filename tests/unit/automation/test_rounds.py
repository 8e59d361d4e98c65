"""Rounds answer each in its place, one round at a time, and whoever gives up takes nobody's answer away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from automation.rounds import Rounds


def test_who_comes_during_a_round_is_in_the_next_together() -> None:
    rounds_done: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def doubled(asked: Sequence[int]) -> list[int]:
        rounds_done.append(list(asked))
        begun.set()
        assert go_on.wait(5)
        return [2 * one for one in asked]

    async def scenario() -> None:
        rounds = Rounds("doubling", doubled)
        first = asyncio.create_task(rounds.ask(1))
        assert await asyncio.to_thread(begun.wait, 5)
        others = [asyncio.create_task(rounds.ask(number)) for number in (2, 3, 4)]
        await asyncio.sleep(0.01)
        others[0].cancel()
        go_on.set()
        assert await first == 2
        assert await asyncio.gather(*others[1:]) == [6, 8]

    asyncio.run(scenario())
    assert rounds_done == [[1], [2, 3, 4]]


def test_a_round_that_fails_fails_for_all_in_it_and_for_nobody_later() -> None:
    def refusing_two(asked: Sequence[int]) -> list[int]:
        if 2 in asked:
            raise ValueError("two")
        return list(asked)

    async def scenario() -> None:
        rounds = Rounds("refusing", refusing_two)
        told = await asyncio.gather(rounds.ask(1), rounds.ask(2), return_exceptions=True)
        assert [type(one) for one in told] == [ValueError, ValueError]
        with pytest.raises(ValueError, match="two"):
            await rounds.ask(2)
        assert await rounds.ask(3) == 3

    asyncio.run(scenario())
