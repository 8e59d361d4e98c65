"""A real Prometheus reads the exporter in both formats, and gauge, histogram and record agree on every threshold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from automation.metrics import AutomationMetrics
from drill.children import Children
from drill.monitoring import Prometheus, PrometheusOptions
from exporter.catalogue import BUILD, PAGE, QUEUE_FIGURES, READING
from exporter.figure import Figure
from exporter.server import Exporter
from rules.generate import render_rules
from sluicegate import records
from sluicegate.policy import Thresholds
from sluicegate.producer import Producer
from sluicegate.settings import Settings, default_settings
from sluicegate.store import Store
from sluicegate.submission import Submission
from sluicegate.telemetry import CLASS_QUEUE_AGE_SECONDS, QUEUE_AGE_P95_SECONDS
from tests.exported import add_reader, reader_url
from tests.queues import open_with, wait_until
from tests.small_server import Handler, served

EVERY_S = 1.0
WITHIN_S = 30.0
BOUNDS = Thresholds()
THRESHOLDS = (BOUNDS.recovered_age_p95_seconds, BOUNDS.reject_age_p95_seconds, BOUNDS.drain_age_p95_seconds)
TEXT_JOB = "text"
OF_A_PAGE: tuple[Figure[Any], ...] = (*PAGE, *BUILD)
OF_A_QUEUE: tuple[Figure[Any], ...] = (*QUEUE_FIGURES, *READING)


def settings_for(url: str) -> Settings:
    base = default_settings()
    monitoring = base.monitoring.model_copy(
        update={"scrape_interval_s": EVERY_S, "evaluation_interval_s": EVERY_S, "alert_for_s": 1.0}
    )
    exporter = base.exporter.model_copy(update={"port": 0, "scrape_budget_s": EVERY_S})
    return base.model_copy(update={"redis_url": url, "monitoring": monitoring, "exporter": exporter})


@contextmanager
def as_text(exporter: Exporter) -> Iterator[str]:
    """Pass the exporter's page on as a scraper gets it that knows the text format alone."""
    with httpx.Client(timeout=5, trust_env=False) as client:

        class Page(Handler):
            def respond(self) -> None:
                page = client.get(f"{exporter.url}/metrics", headers={"Accept": "text/plain"})
                self.answer(page.status_code, page.content, page.headers["Content-Type"])

        with served(Page) as address:
            yield address


class Monitored:
    """Hold a queue whose ages are ours, and a Prometheus that scrapes its exporter in both formats."""

    def __init__(self, store: Store, client: Any, prometheus: Prometheus, job: str) -> None:
        self.store, self.client, self.job = store, client, job
        self._api = httpx.Client(base_url=f"{prometheus.url}/api/v1", timeout=5, trust_env=False)

    def close(self) -> None:
        self._api.close()

    def asked(self, query: str, at_s: float | None = None) -> list[Any]:
        at = {} if at_s is None else {"time": repr(at_s)}
        answer = self._get("query", query=query, **at)
        return list(answer["data"]["result"])

    def value(self, query: str, at_s: float) -> float | None:
        """Give the one value of a query, None where the scrape before that instant was lost to a busy machine."""
        series = self.asked(query, at_s)
        return float(series[0]["value"][1]) if series else None

    def types(self, job: str) -> dict[str, str]:
        found = self._get("targets/metadata", match_target=f'{{job="{job}"}}')["data"]
        return {row["metric"]: row["type"] for row in found}

    def failures(self) -> list[str]:
        targets = self._get("targets")["data"]["activeTargets"]
        return [target["lastError"] for target in targets if target["lastError"]]

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self._api.get(f"/{path}", params=parameters)
        return answer.raise_for_status().json()

    def set_ages(self, *ages_s: float) -> None:
        """Let the ready jobs have these ages now, by writing since when they are eligible."""
        now_ms = self.store.observe().at_ms
        ids = [job_id for key in self._indexes() for job_id in self.client.zrange(key, 0, -1)]
        since = dict(zip(sorted(ids), (now_ms - round(age * 1000) for age in ages_s), strict=True))
        for key in self._indexes():
            self.client.zadd(key, {job_id: since[job_id] for job_id in self.client.zrange(key, 0, -1)})

    def _indexes(self) -> list[str]:
        return sorted(self.client.keys("queue:fifo:*"))

    def records_since(self, at_s: float, count: int) -> list[tuple[float, float]]:
        """Wait for so many values of the age record that were written after an instant; give them with their times."""
        record = f'{records.QUEUE_AGE.name}{{queue="default"}}'

        def found() -> list[tuple[float, float]]:
            series = self.asked(f"{record}[20s]")
            values = series[0]["values"] if series else []
            return [(float(at), float(value)) for at, value in values if float(at) > at_s]

        wait_until(lambda: len(found()) >= count, f"{count} values of the record", WITHIN_S)
        return found()


JOBS = 20


@pytest.fixture
def monitored(redis_url: str, children: Children, tmp_path: Path) -> Iterator[Monitored]:
    settings = settings_for(redis_url)
    store = Store.connect(redis_url)
    contract = settings.contract
    open_with(store, contract)
    classes = ("lint-fix", "test-patch", "refactor-plan")
    jobs = [Submission(f"job-{number:02}", classes[number % 3], "{}") for number in range(JOBS)]
    assert all(decision.accepted for decision in Producer(store).submit_many(jobs))
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    add_reader(client)
    exporter = Exporter(settings.model_copy(update={"redis_url": reader_url(redis_url)}))
    exporter.start()
    rules = tmp_path / "sluicegate.rules.yml"
    rules.write_text(render_rules(settings), encoding="utf-8")
    job = settings.monitoring.exporter_job
    try:
        with as_text(exporter) as text:
            targets = {job: [f"127.0.0.1:{exporter.port}"], TEXT_JOB: [text]}
            prometheus = Prometheus(children, PrometheusOptions((rules,), targets, EVERY_S, EVERY_S))
            prometheus.start()
            made = Monitored(store, client, prometheus, job)
            yield made
            made.close()
    finally:
        exporter.stop()
        store.close()
        client.close()


@pytest.mark.parametrize(
    "ages",
    [(0.5, 16.0, 21.0, 90.0), pytest.param((13.0, 14.2, 16.0, 18.9, 19.3, 21.0, 24.1, 26.0), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_gauge_histogram_and_record_stand_on_the_same_side_of_every_threshold(
    monitored: Monitored, ages: tuple[float, ...]
) -> None:
    compared, sides = 0, set()
    for age in ages:
        # The p95 of twenty is the last but one: one straggler says nothing.
        monitored.set_ages(*(age * number / (JOBS - 2) for number in range(JOBS - 1)), 3_600)
        for at_s, record in monitored.records_since(time.time() + EVERY_S, 3):
            for job in (monitored.job, TEXT_JOB):
                gauge = monitored.value(f'{QUEUE_AGE_P95_SECONDS}{{job="{job}"}}', at_s)
                buckets = f'sum by (le) ({CLASS_QUEUE_AGE_SECONDS}_bucket{{job="{job}"}})'
                quantile = monitored.value(f"histogram_quantile(0.95, {buckets})", at_s)
                if gauge is None or quantile is None:
                    continue
                assert [quantile > bound for bound in THRESHOLDS] == [gauge >= bound for bound in THRESHOLDS]
                # A page that is on its way during an evaluation is of its time and comes too late for its record.
                before = monitored.value(f'{QUEUE_AGE_P95_SECONDS}{{job="{job}"}}', at_s - EVERY_S)
                assert record in (gauge, before) or job == TEXT_JOB
                sides.add(tuple(gauge >= bound for bound in THRESHOLDS))
                compared += 1
    assert compared >= 2 * len(ages)
    assert len(sides) == 4, "every side of every threshold was seen"


def test_both_formats_are_read_whole_and_without_a_complaint(monitored: Monitored) -> None:
    wait_until(lambda: len(monitored.asked("sluicegate_redis_up == 1")) == 2, "both scrapes", WITHIN_S)

    assert monitored.failures() == []
    strict, text = monitored.types(monitored.job), monitored.types(TEXT_JOB)
    assert (strict["drain_state"], text["drain_state"]) == ("stateset", "gauge")
    assert (strict[CLASS_QUEUE_AGE_SECONDS], text[CLASS_QUEUE_AGE_SECONDS]) == ("gaugehistogram", "histogram")
    assert strict["sluicegate_admissions"] == "counter"
    assert text["sluicegate_admissions_total"] == "counter"
    names = {
        job: {series["metric"]["__name__"] for series in monitored.asked(f'{{job="{job}",queue="default"}}')}
        for job in (monitored.job, TEXT_JOB)
    }
    assert names[monitored.job] == names[TEXT_JOB]
    # A queue without a call, a delay or a run has no sample of what is about them.
    absent = {
        "provider_5xx_rate", "provider_timeout_rate", "sluicegate_run_live", "sluicegate_run_started_timestamp_seconds",
        "sluicegate_predicted_wait_seconds", "sluicegate_class_predicted_wait_seconds",
        "sluicegate_oldest_unknown_timestamp_seconds",
    }  # fmt: skip
    assert {figure.sample_name for figure in OF_A_QUEUE} - names[TEXT_JOB] == absent


def test_the_pages_of_automation_and_exporter_share_no_name_but_those_of_every_process() -> None:
    automation = {metric.name for metric in AutomationMetrics().registry.collect()}
    exporter = {figure.family_name for figure in (*OF_A_QUEUE, *OF_A_PAGE)}

    assert automation & exporter == set()
    strange = {name for name in automation if not name.startswith(("sluicegate_automation_", "process_", "python_"))}
    assert strange == set()
