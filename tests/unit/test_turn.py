"""Calls over threads that take turns: their order, and what those that waited hear when one got no answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sluicegate.errors import StoreRejected, StoreUnavailable
from sluicegate.turn import Turn


def test_calls_are_made_one_after_another_in_the_order_in_which_they_were_asked_for() -> None:
    made: list[int] = []
    first_may_end = threading.Event()

    def call(number: int) -> int:
        made.append(number)
        if number == 0:
            assert first_may_end.wait(10)
        return number

    async def scenario() -> list[int]:
        turn = Turn()
        asked = [asyncio.ensure_future(turn.call(call, number)) for number in range(20)]
        await asyncio.sleep(0)
        assert turn.is_taken
        first_may_end.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(scenario()) == list(range(20))
    assert made == list(range(20))


@pytest.mark.parametrize(("error", "made"), [(StoreUnavailable("gone"), [0, 9]), (StoreRejected("no"), [0, 1, 2, 9])])
def test_those_that_waited_behind_a_call_without_an_answer_are_not_made(error: Exception, made: list[int]) -> None:
    calls: list[int] = []

    def call(number: int) -> None:
        calls.append(number)
        if number == 0:
            raise error

    async def scenario() -> list[BaseException | None]:
        turn = Turn()
        ended = await asyncio.gather(*[turn.call(call, number) for number in range(3)], return_exceptions=True)
        await turn.call(call, 9)
        return ended

    ended = asyncio.run(scenario())
    assert calls == made
    assert ended[0] is error
    assert [isinstance(one, StoreUnavailable) for one in ended[1:]] == [len(made) == 2] * 2
