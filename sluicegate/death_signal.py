"""Let a child process die with its parent, whatever ends that: the kernel sends the signal."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def death_signal() -> Callable[[], None] | None:
    """Return what asks the kernel to kill the child when its parent dies, None where that can't be asked for.

    The kernel means the parent *thread*: a child that a short-lived thread started would die with that thread. So
    only the main thread asks.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the parent died before the call: the signal would never come

    return ask
