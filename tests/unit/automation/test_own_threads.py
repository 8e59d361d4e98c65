"""What may never return has a thread of its own: one call of a name at a time, and nobody waits for one that hangs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from automation.own_threads import OwnThreads


def test_it_gives_what_is_returned_and_raises_what_is_raised() -> None:
    async def scenario() -> None:
        threads = OwnThreads()
        assert await threads.call("x", 5, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.call("x", 5, divmod, 7, 0)

    asyncio.run(scenario())


def test_one_that_hangs_is_given_up_and_no_other_of_its_name_is_made_until_it_ends() -> None:
    ends, calls = threading.Event(), list[str]()

    def hang(name: str) -> str:
        calls.append(name)
        ends.wait(30)
        return name

    async def scenario() -> None:
        threads = OwnThreads()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await threads.call("x", 0.1, hang, "x")
        assert calls == ["x"]
        assert await threads.call("y", 5, str.upper, "another") == "ANOTHER"
        ends.set()
        async with asyncio.timeout(5):
            while True:
                try:
                    assert await threads.call("x", 5, hang, "again") == "again"
                    break
                except TimeoutError:
                    await asyncio.sleep(0.01)
        assert calls == ["x", "again"]

    asyncio.run(scenario())
    assert not [thread for thread in threading.enumerate() if thread.name == "x" and not thread.daemon]
