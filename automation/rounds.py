"""Do what many ask for in rounds, in a thread, one round at a time: all who come meanwhile are in the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")


class Rounds(Generic[Asked, Given]):
    """Collect what is asked for, and have `do` answer a round of it, each in its place.

    Ask from one event loop. What `do` raises is raised to everybody in the round.
    """

    def __init__(self, name: str, do: Callable[[Sequence[Asked]], Sequence[Given]]) -> None:
        self._name = name
        self._do = do
        self._asked: list[Asked] = []
        self._next: asyncio.Task[Sequence[Given]] | None = None
        self._round = asyncio.Lock()

    async def ask(self, asked: Asked) -> Given:
        """Take part in the next round; one who gives up meanwhile takes nobody else's answer away."""
        if self._next is None:
            self._asked = []
            self._next = asyncio.create_task(self._when_free(self._asked), name=self._name)
            # Nobody may be left to hear of its failure.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        place = len(self._asked)
        self._asked.append(asked)
        given = await asyncio.shield(self._next)
        return given[place]

    async def _when_free(self, asked: list[Asked]) -> Sequence[Given]:
        async with self._round:
            self._next = None
            return await asyncio.to_thread(self._do, asked)
