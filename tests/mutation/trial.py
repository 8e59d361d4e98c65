"""Run some tests, in a process that ends with them, against an altered library on this process's own Redis."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
import redis
from _pytest.runner import runtestprotocol  # what re-running plugins use too: one test with all its fixtures

from drill.server import QueueServer
from sluicegate import functions, observed
from sluicegate.telemetry import Telemetry
from tests.machine.figures import ClockedReader
from tests.mutation.marks import FUNCTION
from tests.mutation.sources import use, use_library

_FIRST_S = 10.0  # what a test may take at the least before it counts as one that never ends


Say = Callable[[dict[str, Any]], None]


class Verdict(StrEnum):
    """Name how a run of tests ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    BROKEN = "broken"  # the altered source is no library: nothing was tried


@dataclass(frozen=True)
class Ending:
    """Hold a verdict, the test that it comes from, and of a passed one with marks what ran and for how long."""

    verdict: Verdict
    test: str = ""
    seconds: float = 0.0
    marks: tuple[int, ...] = ()
    words: str = ""


@dataclass(frozen=True)
class Bench:
    """Hold what a worker process has ready: the session, its running Redis, and a test that no trial runs."""

    session: pytest.Session
    server: QueueServer
    last: pytest.Item


def ready(session: pytest.Session, first: Sequence[pytest.Item], last: pytest.Item) -> Bench:
    """Run some tests, so that what they ask for stays for all: this process's Redis, and the table of the gate."""
    for item, following in zip(first, [*first[1:], last], strict=True):
        for report in runtestprotocol(item, nextitem=following, log=False):
            if report.failed:
                raise RuntimeError(f"a first test fails: {report.longreprtext}")
    for fixture in session._fixturemanager.getfixturedefs("redis_server", first[-1]) or ():
        made = fixture.cached_result[0] if fixture.cached_result is not None else None
        if isinstance(made, QueueServer):
            return Bench(session, made, last)
    raise RuntimeError("no first test asks for a Redis")


def tried(bench: Bench, items: Sequence[pytest.Item], seconds: Sequence[float], body: str) -> Ending:
    """Run tests in their order until one fails; each may take some times as long as it took before."""

    def work(say: Say) -> None:
        use(body)
        _run(bench, items, say)

    return _in_a_process(bench, work, dict(zip(_ids(items), seconds, strict=True)))


def mapped(bench: Bench, item: pytest.Item, library: str, bound_s: float) -> Ending:
    """Run one test against the marked library, and say what it reached."""

    def work(say: Say) -> None:
        use_library(library)
        _read_by_the_library()
        _run(bench, [item], say, marked=True)

    return _in_a_process(bench, work, {item.nodeid: bound_s})


def _ids(items: Sequence[pytest.Item]) -> list[str]:
    return [item.nodeid for item in items]


def _run(bench: Bench, items: Sequence[pytest.Item], say: Say, *, marked: bool = False) -> None:
    _leave_the_server_alone(bench.server)
    with redis.Redis.from_url(bench.server.url) as client:
        client.flushall()
        client.function_flush()
        try:
            client.function_load(functions.library(), replace=True)
        except redis.ResponseError as error:
            say({"verdict": Verdict.BROKEN, "words": str(error)})
            return
    bench.session._setupstate.teardown_exact(items[0])
    for item, following in zip(items, [*items[1:], bench.last], strict=True):
        say({"test": item.nodeid})
        begun = time.monotonic()
        reports = runtestprotocol(item, nextitem=following, log=False)
        took = time.monotonic() - begun
        failed = [report for report in reports if report.failed]
        if failed:
            say({"verdict": Verdict.FAILED, "test": item.nodeid, "words": failed[0].longreprtext[-1500:]})
            return
        if marked:
            skipped = any(report.skipped for report in reports)
            marks = [] if skipped else _marks(bench.server.url)
            say({"verdict": Verdict.PASSED, "test": item.nodeid, "seconds": took, "marks": marks})
            return
    say({"verdict": Verdict.PASSED})


def _marks(url: str) -> list[int]:
    """Give the marks that were reached since the library was loaded; none where the test took the library away."""
    with redis.Redis.from_url(url) as client:
        try:
            return sorted(int(number) for number in client.fcall(FUNCTION, 0))
        except redis.RedisError:
            return []


def _read_by_the_library() -> None:
    """Let figures be read by the library's function: marks in a script of its own would be gone with it."""
    patch = pytest.MonkeyPatch()

    def init(self: Any, client: Any, url: str, source: str) -> None:
        self._client = client

    def observe(self: Any) -> Telemetry:
        answer = self._client.fcall(functions.function_name("observe"), 1, "control:gate", "", "0")
        return observed.telemetry(answer, "default")

    patch.setattr(ClockedReader, "__init__", init)
    patch.setattr(ClockedReader, "observe", observe)
    patch.setattr(ClockedReader, "close", lambda self: None)


def _leave_the_server_alone(server: QueueServer) -> None:
    """Let tests of this process take the server for running: it is another process's child."""
    own: property = vars(QueueServer)["is_running"]
    shared = property(lambda self: self is server or own.__get__(self))
    pytest.MonkeyPatch().setattr(QueueServer, "is_running", shared)


def _in_a_process(bench: Bench, work: Callable[[Say], None], seconds: dict[str, float]) -> Ending:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_child(writing, work)
    os.close(writing)
    try:
        ending = _heard(reading, seconds)
    finally:
        os.close(reading)
        _end(pid)
    if ending.verdict is not Verdict.PASSED:
        _mend(bench.server, hung=ending.verdict is Verdict.TIMED_OUT)
    return ending


def _be_the_child(writing: int, work: Callable[[Say], None]) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        work(lambda said: _say(writing, said))
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent is told, and nothing of it may run twice
        _say(writing, {"verdict": Verdict.BROKEN, "words": repr(error)})
    finally:
        os._exit(code)


def _say(writing: int, said: dict[str, Any]) -> None:
    os.write(writing, json.dumps(said).encode() + b"\n")


def _heard(reading: int, seconds: dict[str, float]) -> Ending:
    """Listen to a child until it has its verdict, or until a test takes far too long."""
    test, until, rest = "", time.monotonic() + _FIRST_S, b""
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            return Ending(Verdict.TIMED_OUT, test)
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            return Ending(Verdict.FAILED, test, words="its process died")
        *lines, rest = (rest + chunk).split(b"\n")
        for said in map(json.loads, lines):
            if "verdict" in said:
                verdict = Verdict(said.pop("verdict"))
                return Ending(verdict, **{**said, "marks": tuple(said.get("marks", ()))})
            test = said["test"]
            until = time.monotonic() + _FIRST_S + 8 * seconds.get(test, 0.0)


def _end(pid: int) -> None:
    """End a child and what it started, and reap it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _mend(server: QueueServer, *, hung: bool) -> None:
    """Give the next trial a server that answers: a test that was ended, or a function that loops, leaves none."""
    if not hung:
        try:
            with redis.Redis.from_url(server.url, socket_timeout=2) as client:
                client.ping()
                return
        except redis.RedisError:
            pass
    if server.is_running:
        server.kill()
    server.restart()
    print(f"mutation: a new server on port {server.port}", file=sys.stderr)
