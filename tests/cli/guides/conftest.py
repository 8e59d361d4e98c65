"""What those who follow the guides ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from drill.children import Children
from drill.monitoring import Alertmanager, Prometheus, PrometheusOptions
from drill.server import QueueServer
from sluicegate.settings import default_settings
from tests.automation_parts import Queue


@pytest.fixture
def own_queue(redis_server: QueueServer) -> Iterator[Queue]:
    """Return an open queue with the drill's contract, alone on its server."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    opened = Queue(redis_server.url, default_settings())
    yield opened
    opened.close()


@pytest.fixture
def prometheus(children: Children) -> Prometheus:
    """Return a Prometheus that has nothing to scrape."""
    running = Prometheus(children, PrometheusOptions(rule_files=(), targets={}))
    running.start()
    return running


@pytest.fixture
def alertmanager(children: Children) -> Alertmanager:
    """Return an Alertmanager that tells nobody."""
    running = Alertmanager(children, "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    running.start()
    return running
