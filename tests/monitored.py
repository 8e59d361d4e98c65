"""Queues whose metrics pages a real Prometheus reads, and whose alerts a real Alertmanager tells back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from drill.children import Children
from drill.monitoring import Alertmanager, Prometheus, PrometheusOptions
from rules.cases import Situation
from rules.generate import render_alertmanager, render_rules
from rules.scope import Scope
from rules.situations import healthy
from sluicegate.records import AlertName
from sluicegate.settings import Settings
from sluicegate.telemetry import QUEUE_LABEL
from tests.small_server import Handler, served

Found = TypeVar("Found")


@dataclass
class Queue:
    """Be the queue's metrics page and the webhook's receiver: what Prometheus reads and Alertmanager tells."""

    scope: Scope
    situation: Situation = field(default_factory=dict)
    webhooks: list[dict[str, Any]] = field(default_factory=list)
    heard_s: dict[str, float] = field(default_factory=dict)

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

    def hear(self, webhook: dict[str, Any]) -> None:
        """Keep a webhook, and when the first of each alert's that fires came."""
        self.webhooks.append(webhook)
        for alert in webhook["alerts"]:
            if alert["status"] == "firing":
                self.heard_s.setdefault(alert["labels"]["alertname"], time.monotonic())

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
def served_pages(*queues: Queue) -> Iterator[str]:
    """Serve the queues' figures on one page, and hear what is told of each; the address is yielded."""

    class Figures(Handler):
        def respond(self) -> None:
            if self.command == "GET":
                self.answer(200, "".join(queue.page() for queue in queues).encode(), "text/plain; version=0.0.4")
            else:
                told = json.loads(self.body())
                for queue in queues:
                    if told["commonLabels"].get(QUEUE_LABEL) == queue.scope.queue:
                        queue.hear(told)
                self.answer(202, b"{}")

    with served(Figures) as address:
        yield address


def wait(condition: Callable[[], Found], within_s: float, what: str) -> Found:
    """Return what the condition finds, as soon as it finds anything."""
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {within_s:g} s: {what}"
        time.sleep(0.05)
    return found


def asked(prometheus: Prometheus, query: str) -> list[Any]:
    answer = httpx.get(f"{prometheus.url}/api/v1/query", params={"query": query}, timeout=5, trust_env=False)
    return list(answer.raise_for_status().json()["data"]["result"])


@contextmanager
def monitored(settings: Sequence[Settings], page: str, alertmanager_config: str = "") -> Iterator[Prometheus]:
    """Start both on the rules of some queues; the first one's settings are those of everything else."""
    first = settings[0]
    with Children() as children:
        alertmanager = Alertmanager(children, alertmanager_config or render_alertmanager(first))
        alertmanager.start()
        files = tuple(children.folder / f"{number}.rules.yml" for number in range(len(settings)))
        for file, one in zip(files, settings, strict=True):
            file.write_text(render_rules(one), encoding="utf-8")
        prometheus = Prometheus(
            children,
            PrometheusOptions(
                rule_files=files,
                targets={first.monitoring.exporter_job: (page,)},
                scrape_interval_s=first.monitoring.scrape_interval_s,
                evaluation_interval_s=first.monitoring.evaluation_interval_s,
                alertmanagers=(alertmanager.address,),
            ),
        )
        prometheus.start()
        yield prometheus
