"""Count what this process does; what lives in Redis is exported by the exporter alone (contract §2)."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

from sluicegate.telemetry import EXECUTOR_SEEN_TIMESTAMP_SECONDS, QUEUE_LABEL

_STEP_BUCKETS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class AutomationMetrics:
    """Hold the figures of one automation process in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.webhook_requests = Counter(
            "sluicegate_automation_webhook_requests_total",
            "Webhook requests by the HTTP code they were answered with.",
            ["code"],
            registry=self.registry,
        )
        self.episode_looks = Counter(
            "sluicegate_automation_episode_looks_total",
            "Looks at open alert episodes by what they came to.",
            ["outcome"],
            registry=self.registry,
        )
        self.ticks = Counter(
            "sluicegate_automation_ticks_total",
            "Controller ticks by result: led, followed (another controller leads) or unreadable.",
            ["result"],
            registry=self.registry,
        )
        self.last_tick = Gauge(
            "sluicegate_automation_last_tick_timestamp_seconds",
            "When this controller last looked and applied its decision; 0 before the first time.",
            registry=self.registry,
        )
        self.executor_seen = Gauge(
            EXECUTOR_SEEN_TIMESTAMP_SECONDS,
            "When this executor last asked for the live run and was answered; 0 before the first time.",
            [QUEUE_LABEL],
            registry=self.registry,
        )
        self.step_seconds = Histogram(
            "sluicegate_automation_step_duration_seconds",
            "Time a run's step took in this executor, by verb and result.",
            ["verb", "result"],
            buckets=_STEP_BUCKETS,
            registry=self.registry,
        )
        self.pages = Counter(
            "sluicegate_automation_pages_total",
            "Pages said by this process, by what they are about.",
            ["about"],
            registry=self.registry,
        )
        self.notices = Counter(
            "sluicegate_automation_notices_total",
            "Tries to tell a receiver of a notice, by what they came to.",
            ["receiver", "outcome"],
            registry=self.registry,
        )
        self.notices_waiting = Gauge(
            "sluicegate_automation_notices_waiting",
            "Notices that a receiver was not told of yet, as last looked at by the process that tells.",
            ["receiver"],
            registry=self.registry,
        )
        self.preflight = Gauge(
            "sluicegate_automation_preflight_findings",
            "What must be fixed on the server before a recovery may lean on it, as last looked at.",
            registry=self.registry,
        )
        self.settings_drift = Gauge(
            "sluicegate_automation_settings_drift",
            "1 while the stored contract has another digest than this process's settings file.",
            registry=self.registry,
        )
