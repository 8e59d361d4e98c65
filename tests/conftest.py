"""What every test can ask for."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest_plugins = ["tests.servers", "tests.queues"]


# What takes a session fixture that is long in the making stays in one process, so that it is made once.
LONG_IN_THE_MAKING = ("explored", "table")


def pytest_configure() -> None:
    """Take signals as a program on a terminal does, whoever started the tests: `nohup` and the shell's `&` ignore some.

    What the tests start inherits it.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one long fixture together."""
    for item in items:
        for fixture in LONG_IN_THE_MAKING:
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(fixture))


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the folder that holds pyproject.toml."""
    return Path(__file__).resolve().parents[1]
