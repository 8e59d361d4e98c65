"""The worker as a process, with the real fake provider: killed, stopped, its server restarted (contract §4, §8)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drill.children import Children
from drill.effects import duplicate_keys, read_effects
from drill.readiness import answers_http
from drill.server import AppendFsync, ServerKind, ServerOptions
from sluicegate.reconcile import by_ledger
from tests.queues import OpenQueue, OpenQueueFunction, contract_of, wait_until
from tests.servers import MakeServer

LEASE_S = 2.0

StartProvider = Callable[[float], str]


@pytest.fixture
def effects_log(tmp_path: Path) -> Path:
    return tmp_path / "effects.jsonl"


@pytest.fixture
def start_provider(children: Children, effects_log: Path) -> StartProvider:
    """Return a function that starts the fake provider with a service time and gives its address."""

    def start(service_s: float) -> str:
        program = (sys.executable, "-m", "drill.cli_plant", "provider", "--log", str(effects_log))
        options = ("--service-s", str(service_s), "--jitter-s", "0")
        port = children.start_listening(
            "provider", lambda port: (*program, *options, "--port", str(port)), answers_http("/healthz")
        )
        return f"http://127.0.0.1:{port}"

    return start


def start_worker(children: Children, redis_url: str, provider_url: str, name: str = "w1") -> int:
    options = ("--redis-url", redis_url, "--provider-url", provider_url, "--worker-id", name)
    return children.spawn(name, (sys.executable, "-m", "sluicegate", "worker", "run", *options))


def said(children: Children, event: str) -> int:
    """Count an event in what a worker has said so far; the last line may not be whole yet."""
    return sum(f'"event": "{event}"' in line for line in children.log_path("w1").read_text().splitlines())


def intents(queue: OpenQueue) -> int:
    return sum(queue.client.hexists(key, "intent") for key in queue.client.scan_iter("job:*"))


def test_a_worker_killed_in_mid_call_leaves_at_most_its_slots_unknown_in_time_and_nothing_is_done_twice(
    open_queue: OpenQueueFunction, children: Children, start_provider: StartProvider, effects_log: Path
) -> None:
    queue = open_queue(lease_ms=int(LEASE_S * 1000), timings={"call_timeout_max_s": 5})
    provider = start_provider(1.0)
    ids = [queue.accepted("refactor-plan") for _ in range(4)]
    start_worker(children, queue.url, provider)
    wait_until(lambda: intents(queue) == 2, "two calls")
    children.kill("w1")
    killed = time.monotonic()
    unknown: tuple[str, ...] = ()
    while len(unknown) < 2:
        assert time.monotonic() - killed < LEASE_S + 0.5, "the leases were not found in time"
        time.sleep(0.05)
        queue.store.sweep()
        unknown = queue.store.list_jobs("unknown")
    assert len(unknown) == 2
    assert queue.store.observe().ready == 2, "no job went straight back to pending"
    for job_id in unknown:
        assert by_ledger(queue.store, job_id).state == "ready"
    start_worker(children, queue.url, provider, "w2")
    wait_until(lambda: all(queue.state(job_id) == "succeeded" for job_id in ids), "the end of all jobs", 20)
    effects = read_effects(effects_log)
    assert {effect.key for effect in effects} == set(ids)
    assert duplicate_keys(effects) == {}


def test_an_idle_worker_that_stands_still_takes_no_job(
    open_queue: OpenQueueFunction, children: Children, start_provider: StartProvider
) -> None:
    queue = open_queue(lease_ms=int(LEASE_S * 1000))
    pid = start_worker(children, queue.url, start_provider(0.01))
    wait_until(lambda: said(children, "gate_seen") == 1, "the worker")
    first = queue.accepted()
    wait_until(lambda: queue.state(first) == "succeeded", "a job, so that it waits for the next one")
    wait_until(lambda: queue.client.info("clients")["blocked_clients"] == 1, "its wait for work")
    os.kill(pid, signal.SIGSTOP)
    try:
        job_id = queue.accepted()
        time.sleep(1.0)  # four times as long as a wait for work lasts
        assert queue.state(job_id) == "ready", "any other worker may have it"
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: queue.state(job_id) == "succeeded", "its end")


def test_sigterm_finishes_what_has_the_slack_says_so_in_json_and_exits_0(
    open_queue: OpenQueueFunction, children: Children, start_provider: StartProvider
) -> None:
    queue = open_queue(timings={"call_timeout_max_s": 5})
    job_id = queue.accepted("refactor-plan")
    options = ("--redis-url", queue.url, "--provider-url", start_provider(0.5), "--worker-id", "w1")
    argv = (sys.executable, "-m", "sluicegate", "worker", "run", *options)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: intents(queue) == 1, "the call")
            process.send_signal(signal.SIGTERM)
            said, complained = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, complained) == (0, "")
    assert queue.state(job_id) == "succeeded"
    names = [json.loads(line)["event"] for line in said.splitlines()]
    assert names[0] == "worker_started"
    assert names[-3:] == ["provider_call", "stop_pull", "worker_stopped"]


@pytest.mark.parametrize("kind", [ServerKind.REDIS, ServerKind.VALKEY], ids=str)
def test_a_restart_of_the_server_is_outlived_with_all_jobs(
    kind: ServerKind, make_server: MakeServer, children: Children, start_provider: StartProvider, tmp_path: Path
) -> None:
    options = ServerOptions(kind=kind, folder=tmp_path, append_only=True, append_fsync=AppendFsync.ALWAYS)
    server = make_server(options)
    queue = OpenQueue(server.url, contract_of())
    provider = start_provider(0.1)
    start_worker(children, server.url, provider)
    ids = [queue.accepted("refactor-plan") for _ in range(30)]
    wait_until(lambda: queue.state(ids[1]) == "succeeded", "the first jobs")
    server.kill()
    wait_until(lambda: said(children, "store_unavailable") > 0, "the worker's notice of the outage")
    server.restart()
    queue.close()  # its connections are those to the server before
    wait_until(lambda: said(children, "store_available") > 0, "the worker's return")
    wait_until(lambda: {queue.state(job_id) for job_id in ids} == {"succeeded"}, "the end of all jobs", 20)
    queue.check()
    queue.close()
    assert said(children, "store_unavailable") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--provider-url", "ftp://nowhere"), "The provider's address 'ftp://nowhere' is not an HTTP address."),
        (("--provider-url", "http://no where"), "The provider's address 'http://no where' holds a space"),
        (("--redis-url", "http://nowhere"), "This is not a Redis address."),
        (("--max-inflight", "0"), "worker.max_inflight 0 is not valid"),
        (("--queue", "No Name"), "queue 'No Name' is not valid"),
        (("--settings", "no-such.yaml"), "The settings file no-such.yaml cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_with_a_hint_and_exit_2(options: tuple[str, ...], sentence: str) -> None:
    argv = (sys.executable, "-m", "sluicegate", "worker", "run", *options)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
