"""There is no Prometheus and no Alertmanager: the controller tightens by itself, and opens the run by itself."""

from __future__ import annotations

from drill.expectations import gate, jobs, load, runs, workers
from drill.needs import Needs
from drill.scenarios import faults
from drill.scenarios.scenario import Scenario

SCENARIO = Scenario(
    name="prometheus-down",
    summary="No Prometheus: no alert comes, so the controller opens the very same run itself.",
    needs=Needs(monitoring=False),
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
        runs.is_opened_by("timer"),
        runs.opens_after_the_timer(),
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
