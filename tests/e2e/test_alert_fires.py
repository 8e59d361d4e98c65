"""From a figure on a metrics page to the webhook, through a real Prometheus and a real Alertmanager."""

from __future__ import annotations

import pytest

from rules.cases import Signal
from rules.scope import Scope
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import QUEUE_AGE_P95_SECONDS
from tests.monitored import Queue, asked, monitored, served_pages, wait
from tests.unit.rules.settings import fast

# Scrape, evaluation, `for` and notification at a second each, and as much again twice for a machine that is busy.
ARRIVES_WITHIN_S = 12.0
ENDS_WITHIN_S = 30.0
STARTS_WITHIN_S = 20.0


@pytest.mark.e2e
def test_an_age_past_the_drain_bound_becomes_one_webhook_that_names_the_runbook_and_its_end_another() -> None:
    settings = fast()
    queue = Queue(Scope(settings))
    with served_pages(queue) as address:
        url = f"http://{address}/webhooks/alertmanager"
        told = settings.monitoring.model_copy(update={"webhook_url": url})
        settings = settings.model_copy(update={"monitoring": told})
        with monitored([settings], address) as prometheus:
            # Given a healthy queue, long enough for anything to fire that should not.
            wait(lambda: asked(prometheus, records.QUEUE_AGE.name), STARTS_WITHIN_S, "a recorded age")
            firing = f'ALERTS{{alertstate="firing",alertname="{AlertName.WATCHDOG}"}}'
            wait(lambda: asked(prometheus, firing), STARTS_WITHIN_S, "the watchdog")
            wait(lambda: asked(prometheus, f"{records.SNAPSHOT.name} offset 4s"), STARTS_WITHIN_S, "four seconds")
            assert queue.webhooks == []

            # When the age reaches the bound.
            queue.situation = {QUEUE_AGE_P95_SECONDS: Signal(settings.contract.thresholds.drain_age_p95_seconds)}

            # Then the webhook comes in time, with the labels that its receiver goes by.
            critical = AlertName.QUEUE_AGE_CRITICAL
            (first, *_) = wait(lambda: queue.alerts(critical, "firing"), ARRIVES_WITHIN_S, "the drain's webhook")
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
            wait(lambda: queue.alerts(critical, "resolved"), ENDS_WITHIN_S, "the drain's end")
            groups = {webhook["groupKey"] for webhook in queue.webhooks if webhook["status"] == "firing"}
            assert len([group for group in groups if critical in group]) == 1
            assert all(webhook["truncatedAlerts"] == 0 for webhook in queue.webhooks)
