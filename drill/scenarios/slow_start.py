"""What lies between a worker's claim and its first call takes longer than the lease: the job is not lost with it."""

from __future__ import annotations

from drill.catching import catch_before_its_call
from drill.expectations import gate, jobs, load, workers
from drill.needs import WORKERS
from drill.rig import CAUGHT, RESUMED, Rig
from drill.scenarios import matrix
from drill.scenarios.conditions import all_done, back_for, lost_jobs_found
from drill.scenarios.scenario import Phase, Scenario

_LATE, *_OTHERS = WORKERS


def _be_slow(rig: Rig) -> None:
    children = rig.topology.children
    for name in _OTHERS:
        children.suspend(name)
    # One start is enough; more are for a machine that stalls at the wrong moment.
    caught = catch_before_its_call(rig, _LATE, 1, matrix.COUNT - 5)
    for name in _OTHERS:
        children.resume(name)
    rig.send(caught + 1, matrix.COUNT)


def _wake(rig: Rig) -> None:
    rig.topology.children.resume(_LATE)
    rig.note(RESUMED, f"SIGCONT of {_LATE}: its start-up is over")


SCENARIO = Scenario(
    name="slow-start",
    summary="A start-up slower than the lease: unknown without an intent, retried, and the late worker is refused.",
    needs=matrix.SMALL,
    jobs=matrix.JOBS,
    phases=(
        matrix.started(),
        Phase(
            "starting",
            f"SIGSTOP of {_LATE} between its claim and its first call; the others do the rest",
            lost_jobs_found(),
            within_s=45,
            act=_be_slow,
        ),
        Phase("judged", "the ledger knows of no intent: a retry is safe", all_done(), within_s=30, act=Rig.ask_ledger),
        Phase(
            "late", f"SIGCONT of {_LATE}, which goes on as if nothing were", back_for(_LATE, 5), within_s=30, act=_wake
        ),
    ),
    expectations=(
        jobs.few_are_unknown_in_time(CAUGHT),
        jobs.ledger_allows_the_retry(),
        workers.late_one_is_refused(_LATE),
        jobs.each_succeeds(matrix.COUNT),
        gate.went(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        *jobs.done_once(),
    ),
)
