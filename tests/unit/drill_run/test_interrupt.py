"""Signals end a drill at a safe place, never in the middle of starting or ending a process."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from drill.interrupt import Interrupt, Interrupted


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_signal_is_noted_and_raised_when_the_drill_asks(number: signal.Signals, exit_code: int) -> None:
    with Interrupt() as interrupt:
        interrupt.check()
        os.kill(os.getpid(), number)
        with pytest.raises(Interrupted) as told:
            interrupt.check()
        assert told.value.exit_code == exit_code


def test_a_wait_ends_as_soon_as_a_signal_comes() -> None:
    with Interrupt() as interrupt:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        with pytest.raises(Interrupted):
            interrupt.wait(10)
        assert time.monotonic() - began < 5


def test_the_first_signal_counts_and_further_ones_interrupt_nothing() -> None:
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted) as told:
            interrupt.wait(0)
        assert told.value.number is signal.SIGTERM


def test_the_handlers_of_before_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupt():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_that_is_ignored_on_purpose_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            interrupt.check()
    finally:
        signal.signal(signal.SIGHUP, before)
