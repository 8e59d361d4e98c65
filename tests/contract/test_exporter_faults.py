"""Whatever keeps the exporter from reading a queue: its page is a 200 in time, and shows no figure as healthy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from drill.children import Children
from drill.ports import LOOPBACK, free_port
from drill.server import QueueServer, ServerOptions
from sluicegate.settings import default_settings
from sluicegate.store import Store
from tests.exported import PASSWORD, add_reader, reader_url
from tests.pages import assert_says_nothing, names_of, readable, scrape, serving
from tests.queues import open_with, wait_until
from tests.servers import MakeServer
from tests.tampering import Tamper, TamperingRelay, bulk, cut_short, instead


@pytest.fixture
def store(redis_url: str) -> Iterator[Store]:
    """Open the queue `default`, and give the server the exporter's user."""
    opened = Store.connect(redis_url)
    contract = default_settings().contract
    open_with(opened, contract)
    with redis.Redis.from_url(redis_url) as client:
        add_reader(client)
    yield opened
    opened.close()


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        yield plain


def connections_to(port: int) -> int:
    """Count this process's connections to a port of this machine."""
    own = {link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and f"socket:[{row[9]}]" in own for row in rows)


def error(text: str) -> Tamper:
    return instead(f"-{text}\r\n".encode())


# What goes wrong on the way or at the server → the reasons that are right for it.
ANSWERS: dict[str, tuple[Callable[[TamperingRelay], Tamper], tuple[str, ...]]] = {
    "a truncated answer": (lambda _: cut_short, ("unavailable",)),
    "an answer after the scrape": (lambda relay: relay.late(5.0), ("unavailable", "late")),
    "an answer byte by byte": (lambda relay: relay.dripping(0.05), ("unavailable", "late")),
    "LOADING": (lambda _: error("LOADING Redis is loading the dataset in memory"), ("unavailable",)),
    "MOVED": (lambda _: error("MOVED 3999 127.0.0.1:6381"), ("rejected", "unavailable")),
    "CLUSTERDOWN": (lambda _: error("CLUSTERDOWN Hash slot not served"), ("rejected", "unavailable")),
    "MASTERDOWN": (lambda _: error("MASTERDOWN Link with MASTER is down"), ("rejected", "unavailable")),
    "BUSY": (lambda _: error("BUSY Redis is busy running a script"), ("rejected",)),
    "no EVAL_RO": (lambda _: error("ERR unknown command 'EVALSHA_RO'"), ("rejected",)),
    "half of a reading": (lambda _: instead(bulk(b'{"at":17')), ("rejected",)),
    "a reading of nothing": (lambda _: instead(bulk(b"{}")), ("rejected",)),
    "a reading that is no object": (lambda _: instead(bulk(b"[]")), ("rejected",)),
    "no text": (lambda _: instead(b":1\r\n"), ("rejected",)),
    "nothing": (lambda _: instead(b"$-1\r\n"), ("rejected", "unavailable")),
    "no protocol": (lambda _: instead(b"HTTP/1.1 400 Bad Request\r\n\r\n"), ("unavailable", "rejected")),
}


@pytest.mark.parametrize("fault", ANSWERS)
def test_an_answer_that_is_none_leaves_no_figure_and_the_next_good_one_brings_all_back(
    store: Store, server: QueueServer, fault: str
) -> None:
    make, reasons = ANSWERS[fault]
    with TamperingRelay(server.url) as relay, serving(reader_url(relay.url)) as exporter:
        healthy = readable(exporter)
        relay.tamper_with(make(relay))
        first, second = scrape(exporter), scrape(exporter)
        relay.tamper_with(None)
        back = readable(exporter)

    assert healthy["sluicegate_redis_up", "default"] == 1
    for page in (first, second):
        assert_says_nothing(page, *reasons)
    assert names_of(back) == names_of(healthy)


def test_refused_leaves_no_figure(redis_url: str) -> None:
    with serving(f"redis://{LOOPBACK}:{free_port()}/0") as exporter:
        assert_says_nothing(scrape(exporter), "unavailable")


def test_three_scrapes_of_a_hung_server_make_one_attempt_and_all_come_in_time(
    store: Store, server: QueueServer, session_children: Children
) -> None:
    with serving(reader_url(server.url)) as exporter:
        readable(exporter)
        threads = threading.active_count()
        session_children.suspend(server.kind.value)
        try:
            with ThreadPoolExecutor(3) as scrapers:
                pages = list(scrapers.map(lambda _: scrape(exporter, "2"), range(3)))
        finally:
            session_children.resume(server.kind.value)
        readable(exporter)
        wait_until(lambda: threading.active_count() <= threads, "the number of threads from before")

    for page in pages:
        assert_says_nothing(page, "unavailable", "late")


@pytest.mark.parametrize("way", ["in the event loop", "in a thread"])
def test_stopping_ends_a_read_that_hangs_before_its_connection_is_closed(
    store: Store,
    server: QueueServer,
    client: Any,
    session_children: Children,
    capsys: pytest.CaptureFixture[str],
    way: str,
) -> None:
    if way == "in a thread":
        client.function_flush()  # then only a script can be run, which is the thread's part
    before = connections_to(server.port)
    with serving(reader_url(server.url), budget_s=8) as exporter:
        readable(exporter)
        session_children.suspend(server.kind.value)
        try:
            assert_says_nothing(scrape(exporter, "0.5"), "late")
            reads = [thread for thread in threading.enumerate() if thread.name.startswith("read")]
            started = time.monotonic()
            exporter.stop()
            took_s = time.monotonic() - started
        finally:
            session_children.resume(server.kind.value)

    assert bool(reads) == (way == "in a thread")
    assert connections_to(server.port) == before
    assert not any(thread.is_alive() for thread in reads)
    assert took_s < 3, "it did not wait for the answer"
    assert "collector_failed" not in capsys.readouterr().out


def test_a_server_that_loads_its_data_leaves_no_figure(
    store: Store, server: QueueServer, make_server: MakeServer
) -> None:
    """A replica that is filled says LOADING until it is whole."""
    with redis.Redis.from_url(server.url) as primary:
        primary.config_set("repl-diskless-sync-delay", 0)
        for number in range(400):
            primary.set(f"filling:{number}", "x" * 500)
    replica = make_server(ServerOptions(kind=server.kind))
    with redis.Redis.from_url(replica.url) as filled:
        add_reader(filled)
        filled.config_set("loading-process-events-interval-bytes", 1024)
        filled.config_set("key-load-delay", 20_000)
        filled.replicaof(LOOPBACK, server.port)
        with serving(reader_url(replica.url)) as exporter:
            pages = [scrape(exporter)]
            while pages[-1]["sluicegate_redis_up", "default"] == 1:
                pages.append(scrape(exporter))
                assert len(pages) < 1_000, "it never loaded"
            page = pages[-1]
            filled.config_set("key-load-delay", 0)
            wait_until(lambda: scrape(exporter).get(("sluicegate_gate_initialised", "default")) == 1, "the queue", 30)

    # A server that is busy with loading may also answer too late.
    assert_says_nothing(page, "unavailable", "rejected", "late")


@pytest.mark.parametrize("taken", ["eval_ro", "zcard", "zrange", "exists", "time"])
def test_a_user_who_may_not_run_a_command_has_no_figure(
    store: Store, server: QueueServer, client: Any, taken: str
) -> None:
    store.admit([("job-1", "lint-fix", "fp", "{}", "")])
    ways = ("-eval_ro", "-evalsha_ro", "-fcall_ro")
    add_reader(client, "default", extra=ways if taken == "eval_ro" else (f"-{taken}",))
    with serving(reader_url(server.url)) as exporter:
        page = scrape(exporter)

    assert_says_nothing(page, "rejected")


def test_a_wrong_password_leaves_no_figure(store: Store, server: QueueServer) -> None:
    with serving(reader_url(server.url).replace(PASSWORD, "wrong")) as exporter:
        assert_says_nothing(scrape(exporter), "unavailable", "rejected")


def test_neither_a_missing_library_nor_forgotten_scripts_cost_a_figure(
    store: Store, server: QueueServer, client: Any
) -> None:
    with serving(reader_url(server.url)) as exporter:
        before = readable(exporter)
        client.function_flush()
        client.script_flush()
        after = readable(exporter)

    assert names_of(after) == names_of(before)
    assert after["sluicegate_collector_success", "default"] == 1


def test_a_queue_that_has_drained_shows_zeros_and_then_nothing_once_nobody_can_look(
    store: Store, server: QueueServer
) -> None:
    """No value outlives its scrape: neither the age from before nor the 0 of an empty queue."""
    with TamperingRelay(server.url) as relay, serving(reader_url(relay.url)) as exporter:
        store.admit([("job-1", "lint-fix", "fp", "{}", "")])
        wait_until(lambda: scrape(exporter)["oldest_job_age_seconds", "default"] > 0, "an age")
        job = store.claim("w1", "r1", 1).jobs[0]
        settled = {"worker": "w1", "id": job.job_id, "fence": str(job.fence), "request": "s1", "outcome": "succeeded"}
        store.settle(settled)
        empty = readable(exporter)
        relay.refuse()
        refused = scrape(exporter)

    assert (empty["sluicegate_jobs", "default", "pending"], empty["oldest_job_age_seconds", "default"]) == (0, 0)
    assert ("deadline_slack_p10_seconds", "default") not in empty
    assert empty["drain_state", "default", "admit"] == 1
    assert_says_nothing(refused, "unavailable")


def test_a_scrape_with_little_time_says_late_and_not_healthy(store: Store, server: QueueServer) -> None:
    with TamperingRelay(server.url) as relay, serving(reader_url(relay.url)) as exporter:
        readable(exporter)
        relay.tamper_with(relay.late(0.6))
        page = scrape(exporter, "0.5")

    assert_says_nothing(page, "late")
