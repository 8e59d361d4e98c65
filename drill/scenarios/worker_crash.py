"""A worker is killed with jobs in its hands: they become unknown, and the provider's own log settles them."""

from __future__ import annotations

from drill.expectations import alerts, gate, jobs, load
from drill.rig import Rig
from drill.scenarios import faults
from drill.scenarios.conditions import accepted_for, lost_jobs_found
from drill.scenarios.scenario import Phase, Scenario

SCENARIO = Scenario(
    name="worker-crash",
    summary="kill -9 of a worker that holds jobs: unknown, never done twice, settled by the provider's log.",
    phases=(
        faults.healthy(),
        # The bound is the lease and a moment; the verdict measures it exactly.
        Phase(
            "crashed",
            "kill -9 of a worker that holds jobs; another takes its place",
            lost_jobs_found(),
            within_s=40,
            act=Rig.kill_busy_worker,
        ),
        Phase(
            "settled",
            "the provider's log says what became of them; load goes on",
            accepted_for(10),
            within_s=30,
            act=Rig.reconcile_unknown,
        ),
    ),
    expectations=(
        gate.went(),
        gate.ends("admit", pin=""),
        gate.every_opening_is_proven(),
        alerts.none_fires_but("SluicegateWatchdog"),
        load.every_submission_is_answered(),
        *jobs.common(killed_worker=True),
    ),
)
