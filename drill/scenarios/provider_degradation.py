"""The main job: the provider gets slow, then fails as well; the gate closes, an alert opens the run, it recovers."""

from __future__ import annotations

from drill.expectations import alerts, gate, jobs, load, runs, workers
from drill.scenarios import faults
from drill.scenarios.scenario import Scenario

SCENARIO = Scenario(
    name="provider-degradation",
    summary="The provider gets slow, then fails as well: close, drain, fix, prove, reopen.",
    phases=(
        faults.healthy(),
        faults.slow(),
        faults.failing(),
        faults.alerted(),
        faults.recovered(),
        faults.steady(),
    ),
    expectations=(
        gate.went(faults.REJECTED, faults.DRAINED, faults.RECOVERING, faults.REOPENED),
        gate.closes_in_time(),
        alerts.parts_are_scraped(),
        alerts.a_drain_alert_fires(),
        alerts.alert_opens_the_run(),
        alerts.a_page_leads(full_s=15),
        runs.is_the_only_one(),
        runs.goes_through(*runs.RECOVERY),
        workers.each_reports_its_stop(),
        gate.every_opening_is_proven(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        load.goes_on_after_reopening(faults.AFTERWARDS_S),
        *jobs.common(),
    ),
)
