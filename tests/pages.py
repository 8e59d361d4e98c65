"""Scrape a running exporter as Prometheus does, and judge what its page says of a queue."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import httpx
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.catalogue import QUEUE_FIGURES
from exporter.server import Exporter
from sluicegate.settings import Settings, default_settings
from tests.queues import wait_until

BUDGET_S = 1.0
WAIT_S = 20.0
# What a machine on which other tests run may take for itself.
BUSY_S = 0.5

# (name, queue, values of the other labels by their names) → value.
Page = dict[tuple[str, ...], float]


def settings_for(url: str, budget_s: float = BUDGET_S) -> Settings:
    base = default_settings()
    listening = base.exporter.model_copy(update={"port": 0, "scrape_budget_s": budget_s})
    return base.model_copy(update={"redis_url": url, "exporter": listening})


@contextmanager
def serving(url: str, queues: Sequence[str] = (), budget_s: float = BUDGET_S) -> Iterator[Exporter]:
    """Run an exporter in this process on a free port."""
    exporter = Exporter(settings_for(url, budget_s), queues)
    exporter.start()
    try:
        yield exporter
    finally:
        exporter.stop()


def scrape(exporter: Exporter, timeout: str = "1") -> Page:
    """Scrape once; an answer that is not 200, or comes after the scrape's timeout, fails."""
    headers = {"X-Prometheus-Scrape-Timeout-Seconds": timeout}
    started = time.monotonic()
    answer = _scraper().get(f"{exporter.url}/metrics", headers=headers)
    took_s = time.monotonic() - started
    assert answer.status_code == 200
    assert took_s < float(timeout) + BUSY_S, f"a scrape of {timeout} s took {took_s:.2f} s"
    return page_in(answer.text)


def readable(exporter: Exporter) -> Page:
    """Scrape until the queue could be read, and give that page."""
    pages: list[Page] = []

    def is_up() -> bool:
        pages.append(scrape(exporter, "10"))
        return pages[-1]["sluicegate_redis_up", "default"] == 1

    wait_until(is_up, "a page with figures", WAIT_S)
    return pages[-1]


@cache
def _scraper() -> httpx.Client:
    # A client of its own for each scrape would cost more than the scrape.
    return httpx.Client(timeout=WAIT_S, trust_env=False)


def page_in(text: str) -> Page:
    """Read a page in the text format."""
    page: Page = {}
    for family in parse_text(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            queue = (labels.pop("queue"),) if "queue" in labels else ()
            page[sample.name, *queue, *(labels[name] for name in sorted(labels))] = sample.value
    return page


def names_of(page: Page, queue: str = "default") -> set[str]:
    return {key[0] for key in page if key[1:2] == (queue,)}


def reasons_of(page: Page, queue: str = "default") -> list[str]:
    """Give the reasons that are 1 for figures that are missing."""
    return [key[2] for key, at in page.items() if key[:2] == ("sluicegate_collector_failure", queue) and at == 1]


def assert_says_nothing(page: Page, *reasons: str, queue: str = "default") -> None:
    """Fail unless the page has no figure of the queue at all, and says that it has none and for which reason."""
    assert not names_of(page, queue) & {figure.sample_name for figure in QUEUE_FIGURES}
    assert page["sluicegate_redis_up", queue] == 0
    assert page["sluicegate_collector_success", queue] == 0
    assert len(reasons_of(page, queue)) == 1
    assert reasons_of(page, queue)[0] in reasons
    assert ("process_open_fds",) in page
    assert page["sluicegate_scrape_duration_seconds",] < BUDGET_S
