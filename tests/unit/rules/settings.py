"""The settings that the rules must be right for: the defaults, a fast drill's, and awkward ones."""

from __future__ import annotations

from sluicegate.settings import MonitoringSettings, Settings, default_settings, faster


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


ALL = {"default": default_settings, "fast": fast, "awkward": awkward}
