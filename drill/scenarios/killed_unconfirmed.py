"""A worker is killed after its calls were answered by the provider and before it could confirm them."""

from __future__ import annotations

from drill.expectations import gate, jobs, load
from drill.rig import Rig
from drill.scenarios import matrix
from drill.scenarios.conditions import lost_jobs_found, none_unknown
from drill.scenarios.scenario import Phase, Scenario


def _kill(rig: Rig) -> None:
    # The answers are late, so that the provider has done what no worker can have confirmed yet.
    rig.slow_down()
    matrix.send_all(rig)
    rig.kill_busy_worker(unconfirmed=True)
    rig.heal()


SCENARIO = Scenario(
    name="killed-unconfirmed",
    summary="kill -9 of a worker whose calls are done but not confirmed: unknown, and never done again.",
    needs=matrix.SMALL,
    jobs=matrix.JOBS,
    phases=(
        matrix.started(),
        Phase(
            "killed",
            "kill -9 of a worker between the provider's effects and their confirmation",
            lost_jobs_found(),
            within_s=45,
            act=_kill,
        ),
        Phase(
            "settled",
            "the provider's log says what became of them",
            none_unknown(),
            within_s=10,
            act=Rig.reconcile_unknown,
        ),
    ),
    expectations=(
        jobs.settled_ones_are_not_repeated(),
        jobs.each_succeeds(matrix.COUNT),
        gate.went(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        *jobs.common(killed_worker=True),
    ),
)
