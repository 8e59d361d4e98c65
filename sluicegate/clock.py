"""Time that is passed in, so that logic can be tested without waiting.

The queue's own time is Redis TIME, read inside the functions; these clocks only pace loops and stamp local records.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Give wall time in ms, a monotonic time in seconds, and a way to wait."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """Read the machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # Asked some six times a job: as it is, without a function of Python's round it.
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
