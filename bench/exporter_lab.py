"""What the exporter's bench stands on: queues of four depths on one server, exporters as processes, and scrapes.

What lies in the queues is what submitting put there, and copies of it: a test holds them against the invariants.
"""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bench.lab import Lab
from bench.processes import cpu_seconds
from sluicegate.producer import Producer
from sluicegate.settings import Contract
from sluicegate.store import Store

CLASSES = ("lint-fix", "test-patch", "refactor-plan")
# As Prometheus asks.
SCRAPE_HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "Accept-Encoding": "gzip",
    "X-Prometheus-Scrape-Timeout-Seconds": "10",
}
_BATCH = 100
_SUBMITTED = 1000
_COPIES = 500
_STARTS_WITHIN_S = 20.0
_DEBIAN_PACKAGE = "prometheus-redis-exporter"


class Missing(Exception):
    """Say what is not on this machine, and how to install it."""


def queue_of(depth: int) -> str:
    return f"depth-{depth}"


def list_of(depth: int) -> str:
    """Give the key of the list of ids that a naive reader needs; the queue itself keeps none at such depths."""
    return f"{{{queue_of(depth)}}}:naive-list"


# KEYS: the class's index by age, by deadline, the naive list, the queue's own (kept up to some depth).
# ARGV: prefix, class, first number, count, ids to copy. Copies are as old as though they had come over ten minutes: of
# the few instants of their originals alone, every rank would be easy to find.
_MULTIPLY = """
local p, count, originals = ARGV[1], tonumber(ARGV[4]), #ARGV - 4
local since, due = {}, {}
for i = 1, originals do
  since[i] = redis.call('ZSCORE', KEYS[1], ARGV[4 + i])
  due[i] = redis.call('ZSCORE', KEYS[2], ARGV[4 + i])
end
for n = 1, count do
  local i, number = (n - 1) % originals + 1, tonumber(ARGV[3]) + n
  local id, older = ARGV[4 + i] .. '-' .. string.format('%d', number), number * 7919 % 600000
  local at, due_at = string.format('%d', since[i] - older), string.format('%d', due[i] - older)
  redis.call('COPY', p .. 'job:' .. ARGV[4 + i], p .. 'job:' .. id)
  redis.call('HSET', p .. 'job:' .. id, 'admitted_at', at, 'deadline', due_at)
  redis.call('COPY', p .. 'payload:' .. ARGV[4 + i], p .. 'payload:' .. id)
  redis.call('ZADD', KEYS[1], at, id)
  redis.call('ZADD', KEYS[2], due_at, id)
  redis.call('RPUSH', KEYS[3], id)
  redis.call('RPUSHX', KEYS[4], id)
end
redis.call('HINCRBY', p .. 'counters', 'admitted', count)
redis.call('HINCRBY', p .. 'counters:' .. ARGV[2], 'admitted', count)
"""


def fill(lab: Lab, depths: Sequence[int]) -> None:
    """Open a queue for each depth and fill it with jobs of three classes, then list their ids.

    Up to a thousand are submitted, the rest are copies of those: records, payloads and places in the indexes.
    """
    for depth in depths:
        store = Store.connect(lab.url, queue_of(depth), timeout_s=60)
        contract = contract_of(2 * depth)
        if store.init_queue(contract.for_redis(), contract.digest(), "bench", "a measurement").answer != "moved":
            raise SystemExit("the bench's own server holds a queue already")
        submitted = _submit(lab, store, min(depth, _SUBMITTED), depth)
        for number, job_class in enumerate(CLASSES):
            left = depth - min(depth, _SUBMITTED)
            _multiply(lab, depth, job_class, submitted[job_class], left // 3 + (number < left % 3))
        if store.observe().ready != depth:
            raise SystemExit(f"the queue of {depth} jobs is not {depth} deep")
        store.close()


def contract_of(max_pending: int) -> Contract:
    """Give a contract of three classes that refuses none of the bench's jobs."""
    body: dict[str, Any] = {
        "classes": {name: {"deadline_s": (number + 1) * 86_400} for number, name in enumerate(CLASSES)},
        "max_pending": max_pending,
        "max_running": 1000,
        "timings": {"controller_silent_s": 86_400},
    }
    return Contract.model_validate(body)


def _submit(lab: Lab, store: Store, count: int, depth: int) -> dict[str, list[str]]:
    """Submit so many jobs and give their ids by class."""
    producer, ids = Producer(store), {name: list[str]() for name in CLASSES}
    for start in range(0, count, _BATCH):
        names = [CLASSES[n % len(CLASSES)] for n in range(start, min(start + _BATCH, count))]
        decisions = producer.submit_many([producer.prepare(name, "{}") for name in names])
        for name, decision in zip(names, decisions, strict=True):
            if not decision.accepted:
                raise SystemExit(f"a job of the bench was refused: {decision.reason}")
            ids[name].append(decision.job_id)
        lab.client.rpush(list_of(depth), *(decision.job_id for decision in decisions))
    return ids


def _multiply(lab: Lab, depth: int, job_class: str, originals: Sequence[str], count: int) -> None:
    # Once each: a batch that is sent again after a lost answer would be counted twice.
    patient: Any = redis.Redis.from_url(lab.url, socket_timeout=120, retry=Retry(NoBackoff(), 0))
    multiply = patient.register_script(_MULTIPLY)
    prefix = f"{{{queue_of(depth)}}}:"
    indexes = [f"{prefix}queue:fifo:{job_class}:-", f"{prefix}queue:ready:{job_class}:-"]
    for start in range(0, count, _COPIES):
        batch = (prefix, job_class, start, min(_COPIES, count - start), *originals)
        multiply(keys=[*indexes, list_of(depth), f"{prefix}queue:pending"], args=batch)
    patient.close()


@dataclass(frozen=True, slots=True)
class Target:
    """Hold one exporter's process and where it is scraped."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)


class Scraper:
    """Scrape one target over one connection, as Prometheus does."""

    def __init__(self, target: Target) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)

    def scrape(self) -> tuple[float, int]:
        """Give the seconds and the bytes of one whole answer."""
        began = time.perf_counter()
        self._connection.request("GET", "/metrics", headers=SCRAPE_HEADERS)
        answer = self._connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - began
        if answer.status != 200:
            raise SystemExit(f"a scrape was answered {answer.status}")
        return took, len(body)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def scraped(target: Target) -> Iterator[Scraper]:
    scraper = Scraper(target)
    try:
        yield scraper
    finally:
        scraper.close()


@contextmanager
def own_exporter(lab: Lab, depth: int) -> Iterator[Target]:
    """Run this project's exporter on one queue."""
    port = free_port()
    words = ("exporter", "serve", "--redis-url", lab.url, "--queue", queue_of(depth), "--port", str(port))
    with _running((sys.executable, "-m", "sluicegate", *words), port) as target:
        yield target


@contextmanager
def redis_exporter(lab: Lab, *flags: str) -> Iterator[Target]:
    """Run Debian's redis_exporter on the server; raises Missing where it is not installed."""
    program = shutil.which(_DEBIAN_PACKAGE)
    if program is None:
        raise Missing(f"apt-get install --no-install-recommends {_DEBIAN_PACKAGE}")
    port = free_port()
    address = lab.url.removesuffix("/0")
    argv = (program, f"-redis.addr={address}", f"-web.listen-address=127.0.0.1:{port}", *flags)
    with _running(argv, port) as target:
        yield target


@contextmanager
def running(argv: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[Target]:
    """Run a program that serves /metrics on a port, until the block ends."""
    with _running(argv, port, environment) as target:
        yield target


@contextmanager
def _running(argv: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[Target]:
    with ExitStack() as stack:
        process = subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(environment) if environment else None
        )
        stack.callback(_end, process)
        _wait_until_it_listens(process, port)
        yield Target(process.pid, port)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Missing(f"it ended with {process.returncode} at its start")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise Missing(f"it does not listen after {_STARTS_WITHIN_S:g} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
