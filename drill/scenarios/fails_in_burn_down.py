"""The fault comes back right after green: the controller itself rolls the run back."""

from __future__ import annotations

from drill.expectations import alerts, gate, jobs, load, runs, workers
from drill.scenarios import faults
from drill.scenarios.conditions import refused, run_ends, turned_green
from drill.scenarios.scenario import Phase, Scenario

SCENARIO = Scenario(
    name="fails-in-burn-down",
    summary="The fault returns right after green: queue_age_not_recovering, closed and pinned.",
    ends_closed=True,
    phases=(
        faults.healthy(),
        faults.slow(),
        faults.failing(),
        faults.alerted(),
        Phase("proving", "fix and canaries", turned_green(), within_s=120),
        Phase(
            "relapsed",
            "every call is answered 503 again",
            run_ends("rolled_back"),
            within_s=60,
            act=lambda rig: rig.break_calls(503, 1.0),
        ),
        Phase("closed", "the gate stays closed and pinned", refused("admission_closed"), within_s=10),
    ),
    expectations=(
        gate.went(faults.REJECTED, faults.DRAINED, faults.RECOVERING, faults.DRAINED),
        gate.closes_in_time(),
        alerts.parts_are_scraped(),
        alerts.a_drain_alert_fires(),
        alerts.alert_opens_the_run(),
        runs.is_the_only_one(),
        # Failed calls wait for their retry, so no ready job is old: the burn-down may look done before the breach is
        # seen. The gate does not open on it.
        runs.goes_through(
            *runs.RECOVERY[:7], perhaps="reopen", state="rolled_back", rollback_reason="queue_age_not_recovering"
        ),
        workers.each_reports_its_stop(),
        gate.every_opening_is_proven(),
        gate.ends("drain", pin="rolled_back", rollback_reason="queue_age_not_recovering"),
        load.every_submission_is_answered(),
        *jobs.common(),
    ),
)
