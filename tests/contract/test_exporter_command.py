"""`sluicegate exporter …` as a process: what it prints, how it ends, and what it says to bad input."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families as parse_text

from drill.ports import LOOPBACK, free_port
from exporter.reference import reference
from sluicegate.settings import default_settings
from sluicegate.store import Store
from tests.exported import add_reader, reader_url
from tests.queues import open_with

WITHIN_S = 60.0
COMMAND = [sys.executable, "-m", "sluicegate", "exporter"]


def run(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=repository, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )


@contextmanager
def serving(repository: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `serve` on a free port and give the process and its address once it says that it listens."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *arguments], cwd=repository, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert '"exporter_listening"' in first, first
        yield process, first.split('"url": "')[1].split("/metrics")[0]
    finally:
        process.kill()
        process.wait(WITHIN_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_answers_without_redis_and_a_signal_ends_it_cleanly(repository: Path, number: signal.Signals) -> None:
    nowhere = f"redis://{LOOPBACK}:{free_port()}/0"
    with serving(repository, "--redis-url", nowhere, "--queue", "default", "--queue", "nightly") as (process, url):
        page = httpx.get(f"{url}/metrics", timeout=WITHIN_S)
        process.send_signal(number)
        _, errors = process.communicate(timeout=WITHIN_S)

    assert page.status_code == 200
    up = {
        s.labels["queue"]: s.value for f in parse_text(page.text) for s in f.samples if s.name == "sluicegate_redis_up"
    }
    assert up == {"default": 0, "nightly": 0}
    assert process.returncode == 0
    assert "exporter_stopped" in errors
    assert "Traceback" not in errors
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/metrics", timeout=WITHIN_S)


@pytest.mark.parametrize("word", ["once", "--once"])
def test_once_prints_a_page_that_promtool_accepts_but_for_the_name_that_is_waived(
    repository: Path, redis_url: str, word: str
) -> None:
    contract = default_settings().contract
    store = Store.connect(redis_url)
    open_with(store, contract)
    store.close()
    with redis.Redis.from_url(redis_url) as client:
        add_reader(client)

    once = run(repository, word, "--redis-url", reader_url(redis_url))

    assert (once.returncode, once.stderr) == (0, "")
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool must be on the PATH"
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=once.stdout, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    complaints = [line.split()[0] for line in (checked.stdout + checked.stderr).splitlines() if line]
    assert complaints == ["canary_ok_count"]


def test_once_fails_when_redis_cannot_be_read_and_says_why_beside_the_page(repository: Path) -> None:
    once = run(repository, "once", "--redis-url", f"redis://{LOOPBACK}:{free_port()}/0")

    assert once.returncode == 1
    assert 'sluicegate_redis_up{queue="default"} 0.0' in once.stdout
    assert once.stderr.startswith("queue default: unavailable: ")


@pytest.mark.parametrize("word", ["acl", "--print-acl"])
def test_acl_prints_one_line_for_the_queues_named(repository: Path, word: str) -> None:
    printed = run(repository, word, "--queue", "nightly", "--user", "prometheus")

    assert printed.returncode == 0
    assert printed.stdout.startswith("ACL SETUSER prometheus reset on >PASSWORD %R~{nightly}:")
    assert printed.stdout.count("\n") == 1


def test_reference_prints_the_page_of_the_docs(repository: Path) -> None:
    assert run(repository, "reference").stdout == reference()


def test_a_taken_port_is_one_sentence_a_hint_and_exit_2(repository: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]

        refused = run(repository, "serve", "--port", str(port))

    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"The exporter cannot listen on {LOOPBACK}:{port}: address already in use.",
        "Choose another with --port, or --port 0 for any free one.",
    ]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("serve", "--port", "70000"), "exporter.port"),
        (("serve", "--host", "no-such-host.invalid"), "no-such-host.invalid"),
        (("once", "--queue", "No Queue"), "--queue No Queue"),
        (("once", "--redis-url", "http://127.0.0.1"), "not a Redis address"),  # it may hold a password
        (("acl", "--queue", "a*"), "--queue a*"),
        (("serve", "--settings", "no/such/file.yaml"), "no/such/file.yaml"),
        (("serve", "--redis"), "--redis"),
        (("--once", "--print-acl"), "--once"),
        (("--once", "serve"), "--once"),
        (("--queue", "nightly", "serve"), "before a command"),
        (("--once", "--queue", "No Queue"), "--queue No Queue"),
    ],
)
def test_bad_input_is_a_sentence_that_names_it_and_exit_2(
    repository: Path, arguments: tuple[str, ...], named: str
) -> None:
    refused = run(repository, *arguments)

    assert refused.returncode == 2
    assert named in refused.stderr.splitlines()[0]
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize("word", ["serve", "once", "acl", "reference"])
def test_every_help_ends_with_an_example(repository: Path, word: str) -> None:
    shown = run(repository, word, "--help")

    assert shown.returncode == 0
    assert f"sluicegate exporter {word}" in shown.stdout.strip().splitlines()[-1]
