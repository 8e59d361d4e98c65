"""A queue behind three real Sentinels: found through them, and found again after its primary was killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drill.children import Children
from drill.server import ServerKind
from exporter.server import Exporter
from sluicegate.errors import StoreError, StoreRejected, StoreUnavailable
from sluicegate.producer import Producer
from sluicegate.settings import Settings, default_settings
from sluicegate.store import Store
from tests.queues import store_of, wait_until
from tests.topologies import SERVICE, Watched, start_server

PASSWORD = "s3cret-of-the-queue"


@pytest.fixture(params=[ServerKind.REDIS, ServerKind.VALKEY], ids=str)
def watched(request: pytest.FixtureRequest, children: Children) -> Watched:
    return Watched(children, request.param, password=PASSWORD)


@pytest.fixture
def settings(watched: Watched, tmp_path: Path) -> Settings:
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    body: dict[str, Any] = default_settings().model_dump(mode="json")
    # Host and port of the address are nobody's.
    body |= {
        "redis_url": "redis://nobody.invalid:1/0",
        "redis_password_file": secret,
        "redis": {"sentinels": list(watched.sentinels), "service": SERVICE},
    }
    body["exporter"] |= {"port": 0, "scrape_budget_s": 2.0}
    return Settings.model_validate(body)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with store_of(settings) as made:
        yield made


def submitted(store: Store) -> bool:
    try:
        return Producer(store).submit("lint-fix", "{}").accepted
    except StoreError:
        return False


def test_a_failover_is_survived_by_who_writes_and_who_reads(store: Store, settings: Settings, watched: Watched) -> None:
    reader = Store.of(settings, read_only=True)
    assert submitted(store)
    assert reader.observe().ready == 1
    watched.in_step()
    exporter = Exporter(settings)

    # A Sentinel is gone too: the other two are enough, and the first that answers is asked.
    watched.kill("sentinel-0")
    watched.kill("one")
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        store.observe()
    assert time.monotonic() - began < 2.5
    dark = asyncio.run(exporter.collector.scrape())
    assert [reading.redis_up for reading in dark.readings] == [False]

    wait_until(lambda: watched.is_primary("two"), "another primary")
    wait_until(lambda: submitted(store), "a submission to the new primary")
    wait_until(lambda: ready_by(reader) == 2, "both jobs in view")
    assert asyncio.run(exporter.collector.scrape()).complete
    exporter.stop()
    reader.close()


def test_nobody_who_knows_the_service_is_a_sentence(settings: Settings) -> None:
    other = settings.redis.model_copy(update={"service": "another"})
    store = Store.of(settings.model_copy(update={"redis": other}))
    with pytest.raises(StoreUnavailable, match="another"):
        store.observe()
    store.close()


def test_a_server_among_the_sentinels_that_is_none_is_passed_over(
    settings: Settings, watched: Watched, children: Children
) -> None:
    plain = f"127.0.0.1:{start_server(children, watched.kind, 'plain')}"
    with store_of(by_sentinels(settings, plain, *watched.sentinels)) as store:
        assert submitted(store)
    alone = Store.of(by_sentinels(settings, plain))
    with pytest.raises(StoreRejected, match="unknown command"):
        alone.observe()
    alone.close()
    # While another may know it soon, it is to be waited for.
    with_one_that_is_gone = Store.of(by_sentinels(settings, plain, "127.0.0.1:1"))
    with pytest.raises(StoreUnavailable, match="unknown command"):
        with_one_that_is_gone.observe()
    with_one_that_is_gone.close()


def by_sentinels(settings: Settings, *sentinels: str) -> Settings:
    return settings.model_copy(update={"redis": settings.redis.model_copy(update={"sentinels": sentinels})})


def ready_by(reader: Store) -> int | None:
    try:
        return reader.observe().ready
    except StoreError:
        return None
