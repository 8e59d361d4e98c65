"""What every test can ask for."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.servers", "tests.queues", "tests.week"]


# Files whose tests share what is long in the making stay in one process, so that it is made once. (xdist's own groups
# by mark have no effect: xdist 3.8 writes them into a field of a test that pytest 9.2 no longer reads.)
TOGETHER = {
    **dict.fromkeys(("conditions", "exploration", "left_out_rules", "liveness", "processes"), "explored"),
    **dict.fromkeys(("gate_readings", "gate_rows"), "table"),
    **dict.fromkeys(("backtest_prometheus", "tune_one_threshold"), "week"),
    "recorded_drill": "degraded",
    "wheel": "built",
}


class Together(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Send each test by itself to whoever is free, but those of a group to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0].rsplit("/", 1)[-1]
        return TOGETHER.get(file.removeprefix("test_").removesuffix(".py"), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Together:
    """Let the groups above be kept."""
    return Together(config, log)


def pytest_configure() -> None:
    """Take signals as a program on a terminal does, whoever started the tests: `nohup` and the shell's `&` ignore some.

    What the tests start inherits it.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the folder that holds pyproject.toml."""
    return Path(__file__).resolve().parents[1]
