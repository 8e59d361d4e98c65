"""A worker's event loop is uvloop's where that exists, and asyncio's elsewhere."""

from __future__ import annotations

import asyncio
import sys

import pytest

from sluicegate import event_loop


async def kind_of_loop() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_the_loop_is_that_of_uvloop_where_it_exists() -> None:
    assert event_loop.run(kind_of_loop()) == "uvloop"


def test_without_uvloop_the_loop_is_that_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)  # as where it is not installed
    assert event_loop.run(kind_of_loop()) == "asyncio"
