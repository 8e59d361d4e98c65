"""What ten thousand scrapes leave behind in the exporter's process, with Redis failing in between: nothing."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import redis

from drill.children import Children
from drill.server import QueueServer
from sluicegate.settings import default_settings
from sluicegate.store import Store
from tests.queues import wait_until

WITHIN_S = 20.0
# Of the scrape's own time, so that a hung Redis costs the test less.
TIMEOUT_S = "0.5"
ACCEPTS = ("text/plain", "application/openmetrics-text; version=1.0.0")


@dataclass(frozen=True, slots=True)
class Held:
    """Hold what a process has: resident memory in KiB, threads, open descriptors."""

    rss: int
    threads: int
    descriptors: int


def held_by(pid: int) -> Held:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Held(int(status["VmRSS"].split()[0]), int(status["Threads"]), descriptors)


@contextmanager
def exporter_of(url: str, repository: Path) -> Iterator[tuple[int, str]]:
    """Run the exporter as a process and give its pid and address."""
    words = ("exporter", "serve", "--port", "0", "--redis-url", url, "--queue", "default", "--queue", "nightly")
    process = subprocess.Popen(
        [sys.executable, "-m", "sluicegate", *words], cwd=repository, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        yield process.pid, process.stderr.readline().split('"url": "')[1].split("/metrics")[0]
    finally:
        process.terminate()
        process.communicate(timeout=WITHIN_S)


class Scraper:
    """Scrape an exporter again and again, with a fault now and then, as a year does it."""

    def __init__(self, server: QueueServer, children: Children, url: str) -> None:
        self._server = server
        self._children = children
        self._url = url
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=WITHIN_S)
        self._accepts = itertools.cycle(ACCEPTS)
        self._faults = itertools.cycle((self._hang, self._wrong_type, self._restart, self._cut_off))

    def scrape(self, times: int, fault_every: int) -> None:
        """Scrape so often, each answer a 200, and end with a Redis that is whole."""
        for number in range(times):
            if number % fault_every == 0:
                next(self._faults)()
            self._once()
        self.whole()

    def whole(self) -> None:
        """Scrape until every queue is readable."""
        wait_until(lambda: self._once().text.count("sluicegate_redis_up{") == self._readable(), "a whole page")

    def close(self) -> None:
        self._client.close()

    def _once(self) -> httpx.Response:
        headers = {"Accept": next(self._accepts), "X-Prometheus-Scrape-Timeout-Seconds": TIMEOUT_S}
        answer = self._client.get("/metrics", headers=headers)
        assert answer.status_code == 200
        return answer

    def _readable(self) -> int:
        return sum(line.endswith(" 1.0") for line in self._once().text.splitlines() if "redis_up{" in line)

    def _hang(self) -> None:
        self._children.suspend(self._server.kind.value)
        self._once()
        self._children.resume(self._server.kind.value)

    def _wrong_type(self) -> None:
        with redis.Redis.from_url(self._server.url) as client:
            client.set("queue:leases", "no sorted set")
            self._once()
            client.delete("queue:leases")

    def _restart(self) -> None:
        self._server.kill()
        self._once()
        self._server.restart()
        open_queue(self._server.url)

    def _cut_off(self) -> None:
        host, port = self._url.removeprefix("http://").split(":")
        for said in (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /metr", b"\x16\x03\x01 no HTTP\r\n\r\n"):
            with socket.create_connection((host, int(port)), WITHIN_S) as cut:
                cut.sendall(said)
        assert self._client.get("/nowhere").status_code == 404


def open_queue(url: str) -> None:
    store = Store.connect(url)
    contract = default_settings().contract
    store.init_queue(contract.for_redis(), contract.digest(), "ada", "a test")  # unless it lives already
    store.close()


def assert_nothing_is_left(
    server: QueueServer, children: Children, repository: Path, *, first: int, then: int, fault_every: int
) -> None:
    open_queue(server.url)
    with exporter_of(server.url, repository) as (pid, url):
        scraper = Scraper(server, children, url)
        scraper.scrape(first, fault_every)
        before = held_by(pid)
        scraper.scrape(then - first, fault_every)
        # A read that was given up on ends by itself, a little later.
        wait_until(lambda: held_by(pid).threads == before.threads, f"{before.threads} threads again")
        wait_until(lambda: held_by(pid).descriptors == before.descriptors, f"{before.descriptors} descriptors again")
        after = held_by(pid)
        scraper.close()
    assert after.rss <= 1.05 * before.rss, (before, after)


def test_hundreds_of_scrapes_with_faults_leave_nothing_behind(
    redis_server: QueueServer, session_children: Children, repository: Path
) -> None:
    assert_nothing_is_left(redis_server, session_children, repository, first=200, then=600, fault_every=50)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_scrapes_with_faults_leave_nothing_behind(
    server: QueueServer, session_children: Children, repository: Path
) -> None:
    assert_nothing_is_left(server, session_children, repository, first=1000, then=10_000, fault_every=250)
