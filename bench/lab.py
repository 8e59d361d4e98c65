"""A server of its own for the measurements, with an open queue on it, and the CPU time of processes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from bench.processes import cpu_seconds, die_with_parent
from sluicegate.settings import Contract
from sluicegate.store import Store

PAYLOAD = "x" * 300
QUEUED_PAYLOAD = "x" * 216
CLASS = "lint-fix"


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
    """Own one Redis server bound to the loopback, without persistence unless an `appendfsync` is named."""

    def __init__(self, dump: Path | None = None, append_fsync: str | None = None) -> None:
        """Start it empty, or with a copy of `dump`, which it may still be loading then."""
        program = shutil.which("redis-server")
        if program is None:
            raise SystemExit("redis-server is not on the PATH: apt-get install --no-install-recommends redis-server")
        self._folder = Path(tempfile.mkdtemp(prefix="queue-bench-"))
        if dump is not None:
            (self._folder / "dump.rdb").symlink_to(dump)
        self._port = _free_port()
        words = [program, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        if append_fsync is not None:
            words += ["--appendonly", "yes", "--appendfsync", append_fsync]
        self._process = subprocess.Popen(
            words,
            stdout=(self._folder / "log").open("w"),
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
        )
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.client: Any = redis.Redis.from_url(self.url, decode_responses=True)
        if dump is None:
            self._wait_until_it_answers(10)

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

    def wait_until_loaded(self) -> None:
        """Wait until it has read its file."""
        self._wait_until_it_answers(300)

    def log(self) -> str:
        return (self._folder / "log").read_text(encoding="utf-8")

    def _wait_until_it_answers(self, within_s: float) -> None:
        end = time.monotonic() + within_s
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
