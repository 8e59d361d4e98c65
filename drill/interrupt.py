"""Turn the signals that ask a drill to end into an answer at the next safe place.

Starting and ending processes must not be cut in the middle by an exception, or one of them could be forgotten. So a
signal is only noted, and the drill asks between its steps.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Say which signal asked the drill to end."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """Return 128 + the signal's number, as shells do."""
        return 128 + self.number


class Interrupt:
    """Note the first signal while entered; the handlers of before are put back on leaving. Main thread only."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._number: signal.Signals | None = None
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            # `nohup` and the shell's `&` ignore a signal on purpose.
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._note)
                self._before[number] = handler
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @property
    def told(self) -> bool:
        """Tell whether a signal came."""
        return self._told.is_set()

    def check(self) -> None:
        """Raise Interrupted when a signal came."""
        if self._number is not None:
            raise Interrupted(self._number)

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than until a signal comes; then raise Interrupted."""
        self._told.wait(max(0.0, seconds))
        self.check()

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._number is None:
            self._number = signal.Signals(number)
        self._told.set()
