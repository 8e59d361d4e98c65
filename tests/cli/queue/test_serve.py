"""`sluicegate queue serve` as a process: its decisions outlive it, a signal ends it well, Redis may come and go."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from drill.ports import LOOPBACK, free_port
from sluicegate.listening import is_loopback
from tests.http_serving import job_body
from tests.queues import OpenQueue

WITHIN_S = 30.0
COMMAND = [sys.executable, "-m", "sluicegate", "queue"]
TOKEN = "a-token-of-this-test"


@contextmanager
def serving(repository: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Run `serve` on a free port, and give the process, its address and its first events once it listens."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *arguments], cwd=repository, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        while said[-1] and '"api_listening"' not in said[-1]:
            said.append(process.stderr.readline())
        assert said[-1], said
        yield process, json.loads(said[-1])["url"], [json.loads(line)["event"] for line in said]
    finally:
        process.kill()
        process.wait(WITHIN_S)


def post(url: str, key: str, token: str = "", **fields: Any) -> httpx.Response:
    headers = {"Idempotency-Key": f'"{key}"'} | ({"Authorization": f"Bearer {token}"} if token else {})
    return httpx.post(f"{url}/v1/jobs", json=job_body(**fields), headers=headers, timeout=WITHIN_S, trust_env=False)


def test_decisions_outlive_the_service(queue: OpenQueue, repository: Path) -> None:
    def three(url: str) -> list[httpx.Response]:
        return [post(url, "k1"), post(url, "k2", job_class="no-such"), post(url, "k1", payload="other")]

    queue_is = ("--redis-url", queue.url, "--queue", "default")
    with serving(repository, *queue_is) as (process, url, _):
        before = three(url)
        process.kill()
    with serving(repository, *queue_is) as (_, url, _):
        after = three(url)

    assert [answer.status_code for answer in before] == [answer.status_code for answer in after] == [202, 422, 422]
    assert [answer.json()["replayed"] for answer in before] == [False, False, True]
    assert [answer.json() for answer in after] == [{**answer.json(), "replayed": True} for answer in before]
    assert queue.counters()["admitted"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_starts_without_redis_and_a_signal_ends_it_with_0(repository: Path, number: signal.Signals) -> None:
    with serving(repository, "--redis-url", f"redis://{LOOPBACK}:{free_port()}/0") as (process, url, _):
        answers = [post(url, f"k{n}") for n in range(3)]
        process.send_signal(number)
        _, errors = process.communicate(timeout=WITHIN_S)

    assert {(answer.status_code, answer.json()["reason"]) for answer in answers} == {(503, "unanswered")}
    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert events == ["store_unavailable", "api_stopped"], "an outage is one line, however many requests meet it"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", timeout=WITHIN_S, trust_env=False)


# This machine's own address, in a way of writing that does not say so.
PERHAPS_OUTSIDE = ("--host", "127.1")


def test_a_token_file_guards_it_and_the_token_is_never_shown(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="ascii")
    nowhere = ("--redis-url", f"redis://{LOOPBACK}:{free_port()}/0")
    with serving(repository, *nowhere, *PERHAPS_OUTSIDE, "--token-file", str(file)) as (process, url, events):
        answers = [post(url, "k1"), post(url, "k1", "wrong"), post(url, "k1", TOKEN)]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WITHIN_S)

    reasons = [answer.json()["reason"] for answer in answers]
    assert reasons == ["unauthorized", "unauthorized", "unanswered"], "whoever has the token is let through to Redis"
    assert events == ["api_listening"]
    assert TOKEN not in errors


def test_without_a_token_an_address_that_others_may_reach_is_warned_of(repository: Path) -> None:
    nowhere = ("--redis-url", f"redis://{LOOPBACK}:{free_port()}/0")
    with serving(repository, *nowhere, *PERHAPS_OUTSIDE) as (_, _, events):
        assert events == ["api_unguarded", "api_listening"]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.7", False),
        ("queue.example", False),
    ],
)
def test_what_listens_beyond_this_machine_is_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_taken_port_is_one_sentence_a_hint_and_exit_2(repository: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            [*COMMAND, "serve", "--port", str(port)],
            cwd=repository,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"The queue's API cannot listen on {LOOPBACK}:{port}: address already in use.",
        "Choose another with --port, or --port 0 for any free one.",
    ]
