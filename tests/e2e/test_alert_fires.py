"""From a figure on a metrics page to the webhook, through a real Prometheus and a real Alertmanager."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
import pytest

from drill.children import Children
from drill.monitoring import Alertmanager, Prometheus, PrometheusOptions
from rules.cases import Signal, Situation
from rules.generate import render_alertmanager, render_rules
from rules.scope import Scope
from rules.situations import healthy
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.settings import Settings
from sluicegate.telemetry import QUEUE_AGE_P95_SECONDS, QUEUE_LABEL
from tests.small_server import Handler, served
from tests.unit.rules.settings import fast

# Scrape, evaluation, `for` and notification at a second each, and as much again twice for a machine that is busy.
ARRIVES_WITHIN_S = 12.0
ENDS_WITHIN_S = 30.0
STARTS_WITHIN_S = 20.0

Found = TypeVar("Found")


@dataclass
class Queue:
    """Be the queue's metrics page and the webhook's receiver: what Prometheus reads and Alertmanager tells."""

    scope: Scope
    situation: Situation = field(default_factory=dict)
    webhooks: list[dict[str, Any]] = field(default_factory=list)

    def page(self) -> str:
        """Write the metrics page of this moment."""
        now = time.time()
        shown = {**healthy(self.scope), **self.situation}
        lines = [
            f"{_with_queue(key, self.scope.queue)} {signal.value + signal.slope_per_s * now}"
            for key, signal in shown.items()
            if signal is not None
        ]
        return "\n".join(lines) + "\n"

    def alerts(self, name: AlertName, status: str) -> list[dict[str, Any]]:
        """Return the alerts of a name that a webhook has told with a status."""
        return [
            alert
            for webhook in self.webhooks
            for alert in webhook["alerts"]
            if alert["labels"]["alertname"] == name and alert["status"] == status
        ]


def _with_queue(key: str, queue: str) -> str:
    metric, _, labels = key.removesuffix("}").partition("{")
    return f'{metric}{{{QUEUE_LABEL}="{queue}"{"," + labels if labels else ""}}}'


@contextmanager
def _served(queue: Queue) -> Iterator[str]:
    class Figures(Handler):
        def respond(self) -> None:
            if self.command == "GET":
                self.answer(200, queue.page().encode(), "text/plain; version=0.0.4")
            else:
                queue.webhooks.append(json.loads(self.body()))
                self.answer(202, b"{}")

    with served(Figures) as address:
        yield address


def _wait(condition: Callable[[], Found], within_s: float, what: str) -> Found:
    """Return what the condition finds, as soon as it finds anything."""
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {within_s:g} s: {what}"
        time.sleep(0.05)
    return found


def _asked(prometheus: Prometheus, query: str) -> list[Any]:
    answer = httpx.get(f"{prometheus.url}/api/v1/query", params={"query": query}, timeout=5, trust_env=False)
    return list(answer.raise_for_status().json()["data"]["result"])


@contextmanager
def _monitored(settings: Settings, page: str) -> Iterator[Prometheus]:
    with Children() as children:
        alertmanager = Alertmanager(children, render_alertmanager(settings))
        alertmanager.start()
        rules = children.folder / "sluicegate.rules.yml"
        rules.write_text(render_rules(settings), encoding="utf-8")
        prometheus = Prometheus(
            children,
            PrometheusOptions(
                rule_files=(rules,),
                targets={settings.monitoring.exporter_job: (page,)},
                scrape_interval_s=settings.monitoring.scrape_interval_s,
                evaluation_interval_s=settings.monitoring.evaluation_interval_s,
                alertmanagers=(alertmanager.address,),
            ),
        )
        prometheus.start()
        yield prometheus


@pytest.mark.e2e
def test_an_age_past_the_drain_bound_becomes_one_webhook_that_names_the_runbook_and_its_end_another() -> None:
    settings = fast()
    queue = Queue(Scope(settings))
    with _served(queue) as address:
        url = f"http://{address}/webhooks/alertmanager"
        told = settings.monitoring.model_copy(update={"webhook_url": url})
        settings = settings.model_copy(update={"monitoring": told})
        with _monitored(settings, address) as prometheus:
            # Given a healthy queue, long enough for anything to fire that should not.
            _wait(lambda: _asked(prometheus, records.QUEUE_AGE.name), STARTS_WITHIN_S, "a recorded age")
            firing = f'ALERTS{{alertstate="firing",alertname="{AlertName.WATCHDOG}"}}'
            _wait(lambda: _asked(prometheus, firing), STARTS_WITHIN_S, "the watchdog")
            _wait(lambda: _asked(prometheus, f"{records.SNAPSHOT.name} offset 4s"), STARTS_WITHIN_S, "four seconds")
            assert queue.webhooks == []

            # When the age reaches the bound.
            queue.situation = {QUEUE_AGE_P95_SECONDS: Signal(settings.contract.thresholds.drain_age_p95_seconds)}

            # Then the webhook comes in time, with the labels that its receiver goes by.
            critical = AlertName.QUEUE_AGE_CRITICAL
            (first, *_) = _wait(lambda: queue.alerts(critical, "firing"), ARRIVES_WITHIN_S, "the drain's webhook")
            assert first["labels"] == {
                "alertname": "SluicegateQueueAgeCritical",
                "queue": "default",
                "runbook": "drain-and-recover",
                "severity": "page",
                "signal": "queue_age",
                "sluicegate_action": "drain",
            }
            assert first["annotations"]["runbook_url"].endswith("/SluicegateQueueAgeCritical.md")

            # And when the age is good again, its end is told too, and all of it was one group.
            queue.situation = {}
            _wait(lambda: queue.alerts(critical, "resolved"), ENDS_WITHIN_S, "the drain's end")
            groups = {webhook["groupKey"] for webhook in queue.webhooks if webhook["status"] == "firing"}
            assert len([group for group in groups if critical in group]) == 1
            assert all(webhook["truncatedAlerts"] == 0 for webhook in queue.webhooks)
