"""The settings that the rules must be right for: the defaults, a fast drill's, and awkward ones."""

from __future__ import annotations

from sluicegate.settings import MonitoringSettings, Settings, default_settings, faster, parse


def fast() -> Settings:
    """Give the thresholds of the fast profile with everything at one second."""
    quick = MonitoringSettings(
        scrape_interval_s=1, evaluation_interval_s=1, alert_for_s=1, keep_firing_for_s=5, group_interval_s=1
    )
    return faster(default_settings(), 5).model_copy(update={"monitoring": quick})


def awkward() -> Settings:
    """Give intervals that fit each other badly, a `for` between two evaluations, no keep, and another queue."""
    odd = MonitoringSettings(
        scrape_interval_s=1.5, evaluation_interval_s=2, alert_for_s=0.5, keep_firing_for_s=0, exporter_job="queues"
    )
    return default_settings().model_copy(update={"monitoring": odd, "queue": "night-jobs"})


def usual() -> Settings:
    """Give the intervals that many start from, and deadlines that no fifteenth of a window divides."""
    body = {
        "contract": {"classes": {"long": {"deadline_s": 600}, "short": {"deadline_s": 50}}},
        "monitoring": {
            "scrape_interval_s": 15,
            "evaluation_interval_s": 15,
            "alert_for_s": 60,
            "group_wait_s": 30,
            "group_interval_s": 300,
        },
    }
    return parse(body, "a test")


def small() -> Settings:
    """Give the least of everything: one place, one job that waits, a lease of a moment, a ramp of a step, no slack."""
    body = {
        "queue": "night_jobs",
        "contract": {
            "classes": {"only": {"deadline_s": 45}},
            "thresholds": {"reject_slack_p10_seconds": 0, "sample_min_calls": 1, "drain_min_failed": 50},
            "lease_ms": 100,
            "max_running": 1,
            "max_pending": 1,
            "ramp_percents": [100],
            "canary_required_ok": 1,
        },
        "worker": {"max_inflight": 64},
    }
    return parse(body, "a test")


def long() -> Settings:
    """Give jobs that have a day: promtool must not look at every two seconds of half of it."""
    return parse({"contract": {"classes": {"night": {"deadline_s": 86_400}}}}, "a test")


ALL = {"default": default_settings, "fast": fast, "awkward": awkward, "usual": usual, "small": small, "long": long}
