"""Call what may never return in a thread of its own: its hang costs nobody a thread, and the process not its end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OwnThreads:
    """Make one call of a name at a time; one that is given up goes on by itself, and no other is made until it ends."""

    def __init__(self) -> None:
        self._under_way: set[str] = set()

    async def call(self, name: str, within_s: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Give what it returns, or raise what it raises.

        Raises TimeoutError where that takes too long, or an earlier call of this name is still under way.
        """
        if name in self._under_way:
            raise TimeoutError("an earlier call is still under way")
        self._under_way.add(name)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            settle: Callable[[], None]
            try:
                settle = partial(answer.set_result, function(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 (it is the caller's, who awaits it)
                settle = partial(answer.set_exception, error)
            finally:
                self._under_way.discard(name)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(lambda: None if answer.done() else settle())

        threading.Thread(target=run, name=name, daemon=True).start()
        async with asyncio.timeout(within_s):
            return await answer
