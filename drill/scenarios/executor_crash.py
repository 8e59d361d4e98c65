"""The automation service is killed in mid-drain and started again: the run is resumed and finishes."""

from __future__ import annotations

from drill.expectations import alerts, gate, jobs, load, runs, workers
from drill.needs import Needs
from drill.rig import Rig
from drill.scenarios import faults
from drill.scenarios.conditions import run_ends, step_reached
from drill.scenarios.scenario import Phase, Scenario


def _crash(rig: Rig) -> None:
    rig.kill_automation()
    rig.restart_automation()


def _repair(rig: Rig) -> None:
    rig.heal()
    rig.approve_fix("the faults are taken away")


SCENARIO = Scenario(
    name="executor-crash",
    summary="kill -9 of the automation service in mid-drain: the run is resumed and finishes.",
    # A person fixes the path here: a hook would be done before the kill comes.
    needs=Needs(fixed_by_hook=False),
    phases=(
        faults.healthy(),
        faults.slow(),
        faults.failing(),
        faults.alerted(),
        Phase("draining", "the run drains by deadline class", step_reached("drain", "started"), within_s=60),
        Phase(
            "crashed",
            "kill -9 of the automation service; it is started again",
            step_reached("fix", "started"),
            within_s=60,
            act=_crash,
        ),
        Phase(
            "repaired",
            "a person repairs the path and says so",
            run_ends("succeeded"),
            within_s=240,
            act=_repair,
        ),
        faults.steady(),
    ),
    expectations=(
        gate.went(faults.REJECTED, faults.DRAINED, faults.RECOVERING, faults.REOPENED),
        alerts.parts_are_scraped(),
        alerts.a_drain_alert_fires(),
        runs.is_the_only_one(),
        runs.is_resumed(),
        runs.goes_through(*runs.RECOVERY),
        workers.each_reports_its_stop(),
        gate.every_opening_is_proven(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        load.goes_on_after_reopening(faults.AFTERWARDS_S),
        *jobs.common(),
    ),
)
