"""What a real Alertmanager silences by the generated rules of inhibition: one queue's alert never another's."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from drill.children import Children
from drill.monitoring import Alertmanager
from rules.generate import render_alertmanager
from sluicegate.records import AlertName
from sluicegate.settings import default_settings
from tests.monitored import wait

pytestmark = pytest.mark.e2e
SOURCE, TARGET = AlertName.QUEUE_AGE_CRITICAL, AlertName.QUEUE_AGE_HIGH


def test_a_drain_silences_its_own_queue_s_advice_and_a_drain_without_a_queue_silences_nobody() -> None:
    posted = [
        {"alertname": SOURCE, "queue": "mine"},
        {"alertname": TARGET, "queue": "mine"},
        {"alertname": TARGET, "queue": "another"},
        # Of a rule by hand that lost its label.
        {"alertname": SOURCE},
    ]
    with Children() as children:
        alertmanager = Alertmanager(children, render_alertmanager(default_settings()))
        alertmanager.start()
        with httpx.Client(base_url=f"{alertmanager.url}/api/v2", timeout=5, trust_env=False) as client:
            client.post("/alerts", json=[{"labels": labels} for labels in posted]).raise_for_status()

            def shown() -> list[dict[str, Any]]:
                alerts: list[dict[str, Any]] = client.get("/alerts").raise_for_status().json()
                settled = all(alert["status"]["state"] != "unprocessed" for alert in alerts)
                return alerts if len(alerts) == len(posted) and settled else []

            silenced = [alert["labels"] for alert in wait(shown, 10, "all alerts") if alert["status"]["inhibitedBy"]]

    assert silenced == [{"alertname": TARGET, "queue": "mine"}]
