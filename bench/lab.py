"""A server of its own for the measurements, with an open queue on it, and the CPU time of processes."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from sluicegate.settings import Contract
from sluicegate.store import Store

PAYLOAD = "x" * 300
QUEUED_PAYLOAD = "x" * 216
CLASS = "lint-fix"


def cpu_seconds(pid: int) -> float:
    """Give the CPU time of a process's threads so far: the scheduler's, in ns, not the clock ticks of times()."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def own_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def contract(max_pending: int) -> Contract:
    """Give a contract under which nothing but the call itself limits a measurement."""
    body: dict[str, Any] = {
        "classes": {
            CLASS: {"deadline_s": 3600},
            "test-patch": {"deadline_s": 7200},
            "refactor-plan": {"deadline_s": 9000},
        },
        "max_pending": max_pending,
        "max_running": 1000,
        "timings": {"controller_silent_s": 86_400},
    }
    return Contract.model_validate(body)


class Lab:
    """Own one Redis server without persistence, bound to the loopback."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise SystemExit("redis-server is not on the PATH: apt-get install --no-install-recommends redis-server")
        self._folder = tempfile.mkdtemp(prefix="queue-bench-")
        self._port = _free_port()
        self._process = subprocess.Popen(
            [program, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder],
            stdout=subprocess.DEVNULL,
        )
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.client: Any = redis.Redis.from_url(self.url, decode_responses=True)
        self._wait_until_it_answers()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self._process.pid)

    def open_queue(self, max_pending: int = 20_000) -> Store:
        """Empty the server and open the queue `default` on it; the caller closes the store."""
        self.client.flushall()
        store = Store.connect(self.url, timeout_s=10)
        opened = contract(max_pending)
        if store.init_queue(opened.for_redis(), opened.digest(), "bench", "a measurement").answer != "moved":
            raise SystemExit("the bench's own server holds a queue already")
        return store

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + 10
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.RedisError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.01)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def affinity_note() -> str:
    return f"{os.cpu_count()} cores"
