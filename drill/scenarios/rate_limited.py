"""The provider answers 429 to every call for a minute, and says when to come back."""

from __future__ import annotations

from drill.expectations import gate, jobs, load, workers
from drill.rig import Rig
from drill.scenarios import matrix
from drill.scenarios.conditions import all_done, lasts
from drill.scenarios.scenario import Phase, Scenario

_LIMITED_S = 60
_RETRY_AFTER_S = 10


def _limit(rig: Rig) -> None:
    rig.break_calls(429, 1.0, retry_after_s=round(rig.profile.real_s(_RETRY_AFTER_S)))
    matrix.send_all(rig)


SCENARIO = Scenario(
    name="rate-limited",
    summary="429 with Retry-After for a minute: no retry is used, no job blocked, all done under their keys.",
    needs=matrix.SMALL,
    jobs=matrix.JOBS,
    phases=(
        matrix.started(),
        Phase("limited", "every call is answered 429 with Retry-After", lasts(_LIMITED_S), within_s=75, act=_limit),
        Phase("lifted", "the provider answers again", all_done(), within_s=60, act=Rig.heal),
    ),
    expectations=(
        workers.wait_as_told(429, _RETRY_AFTER_S),
        jobs.none_is_blocked(),
        jobs.use_no_retry(),
        jobs.each_succeeds(matrix.COUNT),
        gate.went(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        *jobs.common(),
    ),
)
