"""The exporter on real servers: what it shows of a queue, and what it does when there is nothing to read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import httpx
import pytest
import redis

from drill.server import QueueServer
from exporter.server import Exporter
from sluicegate import functions
from sluicegate.producer import Producer
from sluicegate.settings import default_settings
from sluicegate.store import Store
from sluicegate.submission import Submission
from sluicegate.telemetry import STABLE_FIELDS
from tests.exported import add_reader, reader_url
from tests.pages import WAIT_S, names_of, scrape, serving, settings_for
from tests.queues import open_with, wait_until


def execute(client: redis.Redis, *words: str) -> object:
    """Send a command as it stands."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


@pytest.fixture
def store(redis_url: str) -> Iterator[Store]:
    """Open the queue `default` and give the store that may write to it."""
    opened = Store.connect(redis_url)
    contract = default_settings().contract
    open_with(opened, contract)
    yield opened
    opened.close()


@pytest.fixture
def scraped_url(redis_url: str) -> str:
    """Give the server the exporter's user, and its address as the exporter has it."""
    with redis.Redis.from_url(redis_url) as admin:
        add_reader(admin, "default", "nightly")
    return reader_url(redis_url)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """Give a plain client, as a person would use one."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        yield plain


def submit(store: Store, *numbers: int) -> None:
    jobs = [Submission(f"job-{number}", "lint-fix", "{}") for number in numbers]
    assert all(decision.accepted for decision in Producer(store).submit_many(jobs))


def finish(store: Store, request: str, calls: Sequence[str]) -> None:
    """Claim a job for every call and settle each with its outcome."""
    claimed = store.claim("worker-1", request, len(calls)).jobs
    assert len(claimed) == len(calls)
    for job, kind in zip(claimed, calls, strict=True):
        settled = store.settle(
            {
                "worker": "worker-1",
                "id": job.job_id,
                "fence": str(job.fence),
                "request": f"{request}-{job.job_id}",
                "outcome": "succeeded" if kind == "ok" else "retry",
                "delay_ms": 20_000,
                "call": {"kind": kind, "latency_ms": 5},
            }
        )
        assert settled.answer == "ok"


def test_a_new_queue_shows_the_nine_fields_and_admits(store: Store, scraped_url: str) -> None:
    with serving(scraped_url) as exporter:
        page = scrape(exporter)

    without_sample = {"deadline_slack_p10_seconds", "provider_5xx_rate", "provider_timeout_rate"}
    assert names_of(page) & set(STABLE_FIELDS) == set(STABLE_FIELDS) - without_sample
    assert page["queue_age_p95_seconds", "default"] == 0
    assert page["drain_state", "default", "admit"] == 1
    assert page["sluicegate_redis_up", "default"] == 1
    assert page["sluicegate_collector_success", "default"] == 1
    assert page["sluicegate_gate_initialised", "default"] == 1
    assert page["sluicegate_admission_ratio", "default"] == 1
    assert page["sluicegate_threshold", "default", "drain_age_p95_seconds"] == 25


def test_jobs_are_seen_as_they_move(store: Store, scraped_url: str) -> None:
    submit(store, 1, 2, 3)
    with serving(scraped_url) as exporter:
        waiting = scrape(exporter)
        store.claim("worker-1", "request-1", 2)
        running = scrape(exporter)

    assert waiting["sluicegate_jobs", "default", "pending"] == 3
    assert 0 <= waiting["oldest_job_age_seconds", "default"] < WAIT_S
    assert 60 - WAIT_S < waiting["deadline_slack_p10_seconds", "default"] <= 60
    assert waiting["sluicegate_class_admitted_total", "default", "lint-fix"] == 3
    assert (running["worker_inflight", "default"], running["sluicegate_jobs", "default", "pending"]) == (2, 1)
    assert running["sluicegate_class_jobs", "default", "lint-fix", "running"] == 2


def test_rates_counters_and_two_exporters_agree_and_a_restart_loses_nothing(store: Store, scraped_url: str) -> None:
    submit(store, *range(6))
    finish(store, "request-1", ["ok", "ok", "ok", "5xx", "timeout", "refused"])
    with serving(scraped_url) as one, serving(scraped_url) as other:
        pages = [scrape(one), scrape(other)]
    with serving(scraped_url) as restarted:
        pages.append(scrape(restarted))

    for page in pages:
        assert page["provider_5xx_rate", "default"] == pytest.approx(1 / 6)
        assert page["provider_timeout_rate", "default"] == pytest.approx(1 / 6)
        assert page["sluicegate_provider_window_calls", "default"] == 6
        assert page["sluicegate_provider_calls_total", "default", "ok"] == 3
        assert page["sluicegate_class_deadline_outcomes_total", "default", "lint-fix", "met"] == 3
        assert page["sluicegate_jobs", "default", "delayed"] == 3


def test_a_server_without_the_queue_shows_drain_and_says_uninitialised(scraped_url: str) -> None:
    with serving(scraped_url) as exporter:
        page = scrape(exporter)

    assert page["drain_state", "default", "drain"] == 1
    assert page["sluicegate_gate_initialised", "default"] == 0
    assert page["sluicegate_gate_readable", "default"] == 0
    assert page["sluicegate_gate_pinned", "default", "uninitialised"] == 1
    assert page["sluicegate_admission_ratio", "default"] == 0


def test_a_raw_drain_is_shown_at_once_and_a_raw_open_changes_nothing(
    store: Store, scraped_url: str, client: redis.Redis
) -> None:
    with serving(scraped_url) as exporter:
        client.set("drain_state", "drain")
        drained = scrape(exporter)
        client.set("drain_state", "admit")
        store.order("reject", "ada", "a test")
        client.set("admission", "open")
        opened = scrape(exporter)

    assert drained["drain_state", "default", "drain"] == 1
    assert opened["drain_state", "default", "reject_new"] == 1
    assert opened["sluicegate_admission_ratio", "default"] == 0


@pytest.mark.parametrize(
    "damage",
    [
        ("SET", "drain_state", "opne"),
        ("DEL", "control:gate"),
        ("DEL", "admission"),
        ("HDEL", "control:gate", "since"),
        ("SET", "control:epoch", "many"),
        ("SET", "control:gate", "a string where a hash belongs"),
    ],
    ids=" ".join,
)
def test_a_gate_that_is_missing_or_garbage_reads_as_drain(
    store: Store, scraped_url: str, client: redis.Redis, damage: tuple[str, ...]
) -> None:
    execute(client, *damage)

    with serving(scraped_url) as exporter:
        page = scrape(exporter)

    assert page["sluicegate_redis_up", "default"] == 1
    assert [key[2] for key, at in page.items() if key[0] == "drain_state" and at == 1] == ["drain"]
    assert page["sluicegate_gate_readable", "default"] == 0


def test_a_key_of_a_wrong_type_costs_its_queue_the_figures_and_no_other_queue(
    store: Store, scraped_url: str, client: redis.Redis
) -> None:
    client.set("queue:leases", "a string where a sorted set belongs")

    with serving(scraped_url, ["default", "nightly"]) as exporter:
        page = scrape(exporter)

    assert page["sluicegate_redis_up", "default"] == 0
    assert page["sluicegate_collector_failure", "default", "rejected"] == 1
    assert not names_of(page) & set(STABLE_FIELDS)
    assert page["sluicegate_redis_up", "nightly"] == 1
    assert page["drain_state", "nightly", "drain"] == 1


def test_it_starts_while_redis_is_down_and_shows_the_queue_once_it_is_there(server: QueueServer) -> None:
    server.stop()
    with serving(reader_url(server.url)) as exporter:
        down = scrape(exporter)
        server.restart()
        with redis.Redis.from_url(server.url) as admin:
            add_reader(admin)
        wait_until(lambda: scrape(exporter)["sluicegate_redis_up", "default"] == 1, "a page with figures")
        up = scrape(exporter, "3")
        server.stop()
        down_again = scrape(exporter)
        server.restart()

    for page in (down, down_again):
        assert page["sluicegate_redis_up", "default"] == 0
        assert page["sluicegate_collector_failure", "default", "unavailable"] == 1
        assert not names_of(page) & set(STABLE_FIELDS)
    assert up["sluicegate_redis_up", "default"] == 1
    assert up["drain_state", "default", "drain"] == 1


def test_many_scrapes_at_once_hold_one_connection_and_one_thread_a_queue(
    store: Store, scraped_url: str, client: redis.Redis
) -> None:
    others = len(client.client_list())
    # A busy machine takes its time over 32 pages.
    served = serving(scraped_url, ["default", "nightly"], budget_s=9)
    with served as exporter, ThreadPoolExecutor(16) as scrapers:
        pages = list(scrapers.map(lambda _: scrape(exporter, "10"), range(32)))
        readers = [thread for thread in threading.enumerate() if thread.name.startswith("read")]
        connections = len(client.client_list()) - others

    assert all(page["sluicegate_redis_up", "default"] == 1 for page in pages)
    assert len(readers) <= 2
    assert connections <= 2
    wait_until(lambda: len(client.client_list()) <= others, "the exporter's connections gone")


def test_the_user_of_the_acl_line_reads_the_figures_and_nothing_else(store: Store, scraped_url: str) -> None:
    submit(store, 1)
    with serving(scraped_url) as exporter:
        pages = [scrape(exporter), scrape(exporter)]
        with redis.Redis.from_url(scraped_url) as reader:
            for forbidden in (
                ("SET", "drain_state", "admit"),
                ("ZADD", "queue:leases", "1", "job-2"),
                ("GET", "payload:job-1"),
                ("HGETALL", "job:job-1"),
                ("EVAL", "return 1", "0"),
                ("EVAL_RO", "return redis.call('GET', 'payload:job-1')", "0"),
                ("FCALL", functions.function_name("order"), "1", "control:gate", "", "0", "{}"),
                ("FUNCTION", "LIST"),
                ("KEYS", "*"),
                ("FLUSHALL",),
            ):
                with pytest.raises(redis.exceptions.ResponseError):
                    execute(reader, *forbidden)
            # Whatever function it may call shows it no job.
            name = functions.reading_name("job")
            shown = execute(reader, "FCALL_RO", name, "1", "control:gate", "", "0", '{"id":"job-1"}')
            assert json.loads(cast("str", shown)) == {"found": False}

    for page in pages:
        assert page["sluicegate_redis_up", "default"] == 1
        assert page["sluicegate_jobs", "default", "pending"] == 1


def test_stopping_frees_the_port_and_is_safe_twice_and_before_start(scraped_url: str) -> None:
    before = Exporter(settings_for(scraped_url))
    before.stop()
    with serving(scraped_url) as exporter:
        url = exporter.url
        assert httpx.get(f"{url}/healthz", timeout=WAIT_S).text == "ok\n"
        exporter.stop()

    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", timeout=WAIT_S)
