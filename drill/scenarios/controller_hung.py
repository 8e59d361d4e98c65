"""The automation service hangs: nobody looks at the figures, so admission refuses until it is back."""

from __future__ import annotations

from drill.expectations import alerts, gate, jobs, load
from drill.rig import Rig
from drill.scenarios import faults
from drill.scenarios.conditions import accepted_for, refused_for
from drill.scenarios.scenario import Phase, Scenario

SCENARIO = Scenario(
    name="controller-hung",
    summary="SIGSTOP of the automation service: admission refuses with controller_silent, and admits once it is back.",
    phases=(
        faults.healthy(),
        Phase(
            "hung",
            "SIGSTOP of the automation service",
            refused_for("controller_silent", 5),
            within_s=30,
            act=Rig.suspend_automation,
        ),
        Phase(
            "back",
            "SIGCONT of the automation service; load goes on",
            accepted_for(10),
            within_s=30,
            act=Rig.resume_automation,
        ),
    ),
    expectations=(
        load.silence_is_refused_in_time(),
        gate.went(),
        gate.ends("admit", pin=""),
        gate.every_opening_is_proven(),
        alerts.none_fires_but("SluicegateWatchdog", "SluicegateControllerSilent"),
        load.every_submission_is_answered(),
        *jobs.common(),
    ),
)
