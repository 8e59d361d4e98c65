"""The queue's server is killed with every job pending and comes back from its append-only file."""

from __future__ import annotations

from dataclasses import replace

from drill.expectations import decisions, gate, jobs, load
from drill.rig import Rig
from drill.scenarios import matrix
from drill.scenarios.conditions import all_done, answered, pending
from drill.scenarios.scenario import Phase, Scenario


def _fill(rig: Rig) -> None:
    rig.suspend_workers()
    matrix.send_all(rig)


SCENARIO = Scenario(
    name="queue-restart",
    summary="kill -9 of the queue's server with 20 jobs pending (AOF): all 20 are there again, decisions unchanged.",
    needs=replace(matrix.SMALL, append_only=True),
    jobs=matrix.JOBS,
    phases=(
        matrix.started(),
        Phase("filled", "the workers stand still, 20 jobs wait", pending(matrix.COUNT), within_s=10, act=_fill),
        Phase(
            "restarted",
            "kill -9 of the server, which reads its append-only file",
            pending(matrix.COUNT),
            within_s=10,
            act=Rig.kill_server,
        ),
        Phase("repeated", "every job is submitted again", answered(matrix.COUNT), within_s=10, act=matrix.send_all),
        Phase("resumed", "the workers go on", all_done(), within_s=60, act=Rig.resume_workers),
    ),
    expectations=(
        decisions.survive_the_restart(matrix.COUNT),
        decisions.repeats_are_replayed(2),
        decisions.ids_stay_the_same(),
        jobs.each_succeeds(matrix.COUNT),
        gate.went(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        *jobs.common(),
    ),
)
