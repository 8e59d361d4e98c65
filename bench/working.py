"""Measure what a worker process makes of jobs that do nothing: jobs a second, its CPU, and how soon it picks one up."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.lab import CLASS, PAYLOAD, Lab, cpu_seconds
from bench.rows import Row
from sluicegate.producer import Producer

SLOTS = 50
_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Work:
    """Say how many jobs one round works on, and how many it picks up one by one."""

    jobs: int = 5000
    picked: int = 60


@contextmanager
def worker(lab: Lab, slots: int, *, tells: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Start a worker process that waits for its word, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.noop_worker", lab.url, str(slots)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **({"PICK_UP": "1"} if tells else {})},
    )
    try:
        assert process.stdout is not None  # noqa: S101  # it was asked for
        if process.stdout.readline() != "ready\n":
            raise SystemExit("the bench's worker did not start")
        yield process
    finally:
        process.terminate()
        process.wait(20)


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None  # noqa: S101  # it was asked for
    process.stdin.write("\n")
    process.stdin.flush()


def end_to_end(lab: Lab, rounds: int, work: Work) -> list[Row]:
    """Measure one worker process from its first claim to the last confirmation, with leases, ledger and log on."""
    rates, worker_us, server_us = [], [], []
    for _ in range(rounds):
        store = lab.open_queue()
        producer = Producer(store)
        producer.submit_many(producer.prepare(CLASS, PAYLOAD) for _ in range(work.jobs))
        with worker(lab, SLOTS) as process:
            mine, servers = cpu_seconds(process.pid), lab.cpu_seconds()
            began = time.perf_counter()
            _go(process)
            _until_done(lab, work.jobs)
            rates.append(work.jobs / (time.perf_counter() - began))
            worker_us.append((cpu_seconds(process.pid) - mine) / work.jobs * 1e6)
            server_us.append((lab.cpu_seconds() - servers) / work.jobs * 1e6)
        store.close()
    server = f"Redis {statistics.median(server_us):.0f} µs a job"
    return [
        Row("end_to_end", rates, "jobs/s", None, True, f"target: 6× the best acknowledging peer; {server}"),
        Row("worker_cpu", worker_us, "µs", None, False, "target: 0.2× the best acknowledging peer; start-up included"),
    ]


def _until_done(lab: Lab, jobs: int) -> None:
    end = time.monotonic() + _WITHIN_S
    while int(lab.client.hget("counters", "met") or 0) < jobs:
        if time.monotonic() > end:
            raise SystemExit(f"{jobs} jobs that do nothing were not done within {_WITHIN_S:g} s")
        time.sleep(0.005)


def pick_up(lab: Lab, rounds: int, work: Work) -> Row:
    """Measure submit → handler on an idle queue: the median of each round."""
    medians = []
    for _ in range(rounds):
        store = lab.open_queue()
        producer = Producer(store)
        with worker(lab, 2, tells=True) as process:
            _go(process)
            assert process.stdout is not None  # noqa: S101  # it was asked for
            waits = []
            for number in range(work.picked + 1):
                asked_ns = time.monotonic_ns()
                job_id = producer.submit(CLASS, PAYLOAD).job_id
                told, started_ns = process.stdout.readline().split()
                if told != job_id:
                    raise SystemExit(f"the worker started {told}, not {job_id}")
                if number:  # the first one waits for the worker to start
                    waits.append((int(started_ns) - asked_ns) / 1e6)
                time.sleep(0.02)
        medians.append(statistics.median(waits))
        store.close()
    return Row("pick_up", medians, "ms", None, False, "p50; target: 0.8× the best peer")
