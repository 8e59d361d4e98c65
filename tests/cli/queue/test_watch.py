"""`sluicegate queue stats --watch` shows one reading after the other until Ctrl-C; its server may come and go."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from drill.server import QueueServer
from tests.exported import add_reader, reader_url
from tests.lossy import LossyRelay
from tests.queues import OpenQueue, OpenQueueFunction

WITHIN_S = 20.0


@contextmanager
def watching(repository: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sluicegate", "queue", "stats", "--watch", "--every", "0.1", *arguments],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(WITHIN_S)


@pytest.mark.timeout(60)
def test_each_look_is_a_line_for_a_script_and_an_outage_is_said_once(
    repository: Path, queue: OpenQueue, server: QueueServer
) -> None:
    """Under the exporter's user: who watches needs to write nothing."""
    with redis.Redis.from_url(server.url) as client:
        add_reader(client)
    with (
        LossyRelay(server.url) as relay,
        watching(repository, "--json", "--redis-url", reader_url(relay.url)) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        queue.accepted()
        seen = first
        while seen["jobs"]["ready"] == 0:
            seen = json.loads(process.stdout.readline())
        relay.refuse()
        said = process.stderr.readline()
        relay.accept()
        after = json.loads(process.stdout.readline())
        while after["at_ms"] <= seen["at_ms"]:
            after = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WITHIN_S)

    assert (first["jobs"]["ready"], after["jobs"]["ready"]) == (0, 1)
    assert said.startswith("The queue's server does not answer, what was shown is old")
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_person_sees_the_table_again_and_again(repository: Path, queue: OpenQueue, server: QueueServer) -> None:
    with watching(repository, "--redis-url", server.url) as process:
        assert process.stdout is not None
        heads = 0
        while heads < 2:
            heads += process.stdout.readline().startswith("queue default: gate admit")
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 130


def test_a_watch_goes_on_where_the_queue_is_lost_meanwhile(
    repository: Path, open_queue: OpenQueueFunction, server: QueueServer
) -> None:
    queue = open_queue(checked=False)
    with watching(repository, "--json", "--redis-url", server.url) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["gate_initialised"] is True
        queue.client.flushall()
        while json.loads(process.stdout.readline())["gate_initialised"]:
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 130
