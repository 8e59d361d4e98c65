"""Those who ask at the same time share a call, and each gets an answer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from sluicegate.clock import SystemClock
from sluicegate.errors import StoreUnavailable
from sluicegate.shared_calls import MOST_A_CALL, SharedCalls
from sluicegate.store_link import StoreLink


class Doubling:
    """Answer twice what was asked, and remember the calls; fails as long as told."""

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[list[int]] = []
        self._failures = failures

    def __call__(self, asked: Sequence[int]) -> Sequence[int]:
        self.calls.append(list(asked))
        if self._failures:
            self._failures -= 1
            raise StoreUnavailable("gone")
        return [2 * one for one in asked]


def in_threads(send: Doubling) -> Callable[[Sequence[int]], Awaitable[Sequence[int]]]:
    link = StoreLink(structlog.get_logger("test"), SystemClock())
    return lambda asked: link.call(send, asked)


def test_who_asks_in_one_turn_shares_a_call_in_order() -> None:
    send = Doubling()

    async def script() -> list[int]:
        shared: SharedCalls[int, int] = SharedCalls(in_threads(send))
        return list(await asyncio.gather(*(shared.ask(one) for one in range(20))))

    assert asyncio.run(script()) == [2 * one for one in range(20)]
    assert send.calls == [list(range(20))]


def test_a_call_carries_no_more_than_the_function_takes() -> None:
    send = Doubling()

    async def script() -> list[int]:
        shared: SharedCalls[int, int] = SharedCalls(in_threads(send))
        return list(await asyncio.gather(*(shared.ask(one) for one in range(250))))

    assert asyncio.run(script()) == [2 * one for one in range(250)]
    assert sorted(len(call) for call in send.calls) == [50, MOST_A_CALL, MOST_A_CALL]


def test_a_failure_reaches_each_of_its_callers_and_they_may_ask_again() -> None:
    send = Doubling(failures=1)

    async def script() -> tuple[list[object], int]:
        shared: SharedCalls[int, int] = SharedCalls(in_threads(send))
        failed = await asyncio.gather(*(shared.ask(one) for one in range(3)), return_exceptions=True)
        return list(failed), await shared.ask(7)

    failed, again = asyncio.run(script())
    assert [type(error) for error in failed] == [StoreUnavailable] * 3
    assert again == 14


def test_who_has_gone_before_the_call_is_not_asked_for() -> None:
    send = Doubling()

    async def script() -> int:
        shared: SharedCalls[int, int] = SharedCalls(in_threads(send))
        gone, stays = shared.ask(1), shared.ask(2)
        gone.cancel()  # after it has asked, before the call is made
        return await stays

    assert asyncio.run(script()) == 4
    assert send.calls == [[2]]


def test_who_comes_during_the_only_call_is_in_the_next_and_one_who_gives_up_takes_no_answer_along() -> None:
    calls: list[list[int]] = []

    async def script() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def doubled(asked: Sequence[int]) -> Sequence[int]:
            calls.append(list(asked))
            begun.set()
            await go_on.wait()
            return [2 * one for one in asked]

        shared: SharedCalls[int, int] = SharedCalls(doubled, in_flight=1)
        first = shared.ask(1)
        await begun.wait()
        others = [shared.ask(number) for number in (2, 3, 4)]
        await asyncio.sleep(0)
        others[0].cancel()
        go_on.set()
        assert await first == 2
        assert await asyncio.gather(*others[1:]) == [6, 8]

    asyncio.run(script())
    assert calls == [[1], [3, 4]]
