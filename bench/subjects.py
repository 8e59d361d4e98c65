"""Put this queue and its peers under the same measurement: each enqueues, starts a worker, and says what is left."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from bench.environments import ROOT, environment
from bench.lab import CLASS, Lab
from bench.peers import SLOTS, URL
from bench.peers.pins import Pin
from bench.processes import die_with_parent, end
from bench.producing import our_callers
from bench.ticks import VARIABLE
from sluicegate.producer import Producer
from sluicegate.store import Store

WORKER_SLOTS = 50
_ANSWERS_WITHIN_S = 120


class Failed(Exception):
    """Say why a subject could not be measured."""


class Subject(Protocol):
    """Be one queue on the lab's server."""

    name: str

    def open(self) -> None:
        """Begin anew on an empty server."""

    def enqueue(self, n: int, payload: str) -> float:
        """Enqueue one after the other; gives the seconds."""

    def enqueue_at_once(self, n: int, callers: int, payload: str) -> float | None:
        """Enqueue from so many coroutines at once; gives the seconds, None where there are no coroutines."""

    def pick(self, payload: str) -> int:
        """Enqueue one job; gives the monotonic clock in ns just before."""

    def start_worker(self, ticks: Path) -> subprocess.Popen[str]:
        """Start one worker process with WORKER_SLOTS slots, whose handlers write into `ticks`."""

    def left(self) -> int:
        """Count the jobs that are not acknowledged yet."""

    def close(self) -> None: ...


class Ours:
    """Be this queue: real producers, and a worker with leases, intents, confirmations and its log."""

    name = "sluicegate"
    _LEFT = f"return redis.call('ZCARD', 'queue:fifo:{CLASS}:-') + redis.call('ZCARD', 'queue:leases')"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._store: Store | None = None

    def open(self) -> None:
        self.close()
        self._store = self._lab.open_queue()
        self._producer = Producer(self._store)

    def enqueue(self, n: int, payload: str) -> float:
        began = time.perf_counter()
        for _ in range(n):
            self._producer.submit(CLASS, payload)
        return time.perf_counter() - began

    def enqueue_at_once(self, n: int, callers: int, payload: str) -> float | None:
        rate, _ = asyncio.run(our_callers(self._lab.url, n, callers, payload))
        return n / rate

    def pick(self, payload: str) -> int:
        asked_ns = time.monotonic_ns()
        self._producer.submit(CLASS, payload)
        return asked_ns

    def start_worker(self, ticks: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.noop_worker", self._lab.url, str(WORKER_SLOTS)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, VARIABLE: str(ticks)},
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
        )

    def left(self) -> int:
        return int(self._lab.client.eval(self._LEFT, 0))

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


class PeerSubject:
    """Be a peer, in its own environment; raises Failed with its last words where it does not do as asked."""

    def __init__(self, lab: Lab, name: str, pin: Pin, logs: Path) -> None:
        self.name = name
        self._lab = lab
        self._bin = environment(name, pin.requirements) / "bin"
        self._log = logs / f"{name}.log"
        self._worker_log = logs / f"{name}-worker.log"
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))},
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            URL: lab.url,
            SLOTS: str(WORKER_SLOTS),
        }
        self._host = subprocess.Popen(
            [str(self._bin / "python"), "-m", "bench.peers.host", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
            cwd=ROOT,
            env=self._environment,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
        )
        try:
            about = self._ask("about")
        except Failed:
            self.close()
            raise
        self.installed: Mapping[str, str] = about["installed"]
        self._concurrent, self._command, self._left = about["concurrent"], about["worker"], about["left"]

    def _ask(self, do: str, **asked: object) -> Mapping[str, Any]:
        assert self._host.stdin is not None and self._host.stdout is not None  # noqa: S101, PT018  # both were asked for
        try:
            self._host.stdin.write(json.dumps({"do": do, **asked}) + "\n")
            self._host.stdin.flush()
            if not select.select([self._host.stdout], [], [], _ANSWERS_WITHIN_S)[0]:
                raise Failed(f"{self.name} did not {do} within {_ANSWERS_WITHIN_S} s: {_last_words(self._log)}")
            return dict(json.loads(self._host.stdout.readline()))
        except (OSError, ValueError) as error:
            raise Failed(f"{self.name} did not {do}: {_last_words(self._log)}") from error

    def open(self) -> None:
        self._lab.client.flushall()
        self._ask("open")

    def enqueue(self, n: int, payload: str) -> float:
        return float(self._ask("enqueue", n=n, payload=payload)["seconds"])

    def enqueue_at_once(self, n: int, callers: int, payload: str) -> float | None:
        if not self._concurrent:
            return None
        return float(self._ask("enqueue_at_once", n=n, callers=callers, payload=payload)["seconds"])

    def pick(self, payload: str) -> int:
        return int(self._ask("pick", payload=payload)["asked_ns"])

    def start_worker(self, ticks: Path) -> subprocess.Popen[str]:
        program, *arguments = self._command
        return subprocess.Popen(
            [str(self._bin / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._worker_log.open("w"),
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**self._environment, VARIABLE: str(ticks)},
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
        )

    def left(self) -> int:
        return int(self._lab.client.eval(self._left, 0))

    def last_words(self) -> str:
        """Give the end of the worker's log."""
        return _last_words(self._worker_log)

    def close(self) -> None:
        if self._host.stdin is not None:
            self._host.stdin.close()
        end(self._host)


def _last_words(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""
    return " | ".join(text.splitlines()[-3:])[-400:] or "it said nothing"
