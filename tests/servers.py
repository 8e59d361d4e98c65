"""Fixtures with the real servers: one body proves Redis and Valkey alike.

Each test process (so each pytest-xdist worker) has its own pair, started when first asked for, on free ports, without
persistence, and gone when the process is, even when it is killed. A missing server fails the tests that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from drill.children import Children
from drill.server import QueueServer, ServerKind, ServerOptions
from sluicegate.errors import UsageError

MakeServer = Callable[[ServerOptions], QueueServer]


@pytest.fixture(scope="session")
def session_children() -> Iterator[Children]:
    """Own the processes that live as long as this test process."""
    with Children() as children:
        yield children


@pytest.fixture
def children() -> Iterator[Children]:
    """Own the processes of one test; none is left after it."""
    with Children() as children:
        yield children


@pytest.fixture(scope="session")
def redis_server(session_children: Children) -> QueueServer:
    """Return the running Redis of this test process; what earlier tests left in it is still there."""
    return started(session_children, ServerOptions(kind=ServerKind.REDIS), "redis")


@pytest.fixture(scope="session")
def valkey_server(session_children: Children) -> QueueServer:
    """Return the running Valkey of this test process; what earlier tests left in it is still there."""
    return started(session_children, ServerOptions(kind=ServerKind.VALKEY), "valkey")


@pytest.fixture(params=[ServerKind.REDIS, ServerKind.VALKEY], ids=str)
def server(request: pytest.FixtureRequest) -> Iterator[QueueServer]:
    """Return an empty running server, once each kind; the test may kill and restart it."""
    wanted: QueueServer = request.getfixturevalue(f"{request.param}_server")
    if not wanted.is_running:
        wanted.restart()
    _empty(wanted.url)
    yield wanted
    assert wanted.folder is not None
    assert not (wanted.folder / "dump.rdb").exists(), "the next test that restarts this server would find it filled"


@pytest.fixture
def redis_url(server: QueueServer) -> str:
    """Return the address of an empty server, once each kind."""
    return server.url


@pytest.fixture
def make_server(children: Children) -> MakeServer:
    """Return a function that starts a further server for this test alone, with an append-only file for example."""

    def make(options: ServerOptions) -> QueueServer:
        return started(children, options, f"{options.kind}-{len(children.pids())}")

    return make


def started(children: Children, options: ServerOptions, name: str) -> QueueServer:
    """Start a server; fail the test, never skip it, when this machine has none."""
    try:
        server = QueueServer(children, options, name=name)
    except UsageError as error:
        pytest.fail(f"This test needs a real {options.kind} server. {error}", pytrace=False)
    server.start()
    return server


def _empty(url: str) -> None:
    """Remove all keys, functions, scripts: a test that needs the library loads it, as a fresh server would have it."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.function_flush()
        client.script_flush()
