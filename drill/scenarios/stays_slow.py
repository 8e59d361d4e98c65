"""The provider stays slow, and a person says that it is fixed: its answers are right, but too late for a canary."""

from __future__ import annotations

from drill.expectations import alerts, gate, jobs, load, runs, workers
from drill.needs import Needs
from drill.rig import Rig
from drill.scenarios import faults
from drill.scenarios.conditions import gate_reaches, refused, run_ends, step_reached
from drill.scenarios.scenario import Phase, Scenario


def _approve(rig: Rig) -> None:
    rig.approve_fix("said to be fixed, although it is as slow as before")


SCENARIO = Scenario(
    name="stays-slow",
    summary="A provider that answers right but late: its canaries fail, closed and pinned.",
    needs=Needs(fixed_by_hook=False),
    ends_closed=True,
    phases=(
        faults.healthy(),
        faults.slow(),
        Phase("ageing", "the queue ages on: drain", gate_reaches(*faults.DRAINED), within_s=40),
        faults.alerted(),
        Phase("draining", "freeze, snapshot, drain", step_reached("fix", "started"), within_s=120),
        Phase(
            "unproven",
            "a person approves; canaries are answered, but too late",
            run_ends("rolled_back"),
            within_s=180,
            act=_approve,
        ),
        Phase("closed", "the gate stays closed and pinned", refused("admission_closed"), within_s=10),
    ),
    expectations=(
        gate.went(faults.REJECTED, faults.DRAINED, faults.RECOVERING, ("drain", "run_rollback")),
        gate.closes_in_time(),
        alerts.parts_are_scraped(),
        alerts.a_drain_alert_fires(),
        alerts.alert_opens_the_run(),
        alerts.a_page_leads(full_s=15),
        runs.is_the_only_one(),
        runs.goes_through(*runs.RECOVERY[:6], state="rolled_back", rollback_reason="canary_failed"),
        runs.canaries_failed_for("slow"),
        workers.each_reports_its_stop(),
        gate.every_opening_is_proven(),
        gate.ends("drain", pin="rolled_back", rollback_reason="canary_failed"),
        load.every_submission_is_answered(),
        *jobs.common(),
    ),
)
