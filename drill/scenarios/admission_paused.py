"""A person pauses admissions after the fifth of 20 jobs: what was refused is stored, and accepted later as it was."""

from __future__ import annotations

from drill.expectations import decisions, gate, jobs, load
from drill.rig import Rig
from drill.scenarios import matrix
from drill.scenarios.conditions import answered, refusals_due
from drill.scenarios.scenario import Phase, Scenario

_ACCEPTED = 5
_REFUSED = matrix.COUNT - _ACCEPTED


def _send_first(rig: Rig) -> None:
    rig.send(1, _ACCEPTED)


def _send_others(rig: Rig) -> None:
    rig.send(_ACCEPTED + 1, matrix.COUNT)


def _pause(rig: Rig) -> None:
    rig.order_gate("reject", "admissions are paused")
    _send_others(rig)


def _reopen(rig: Rig) -> None:
    rig.order_gate("open", "admissions go on")
    _send_others(rig)


SCENARIO = Scenario(
    name="admission-paused",
    summary="20 jobs, admission paused after 5: 15 stored refusals, the same 15 ids accepted after reopening.",
    needs=matrix.SMALL,
    jobs=matrix.JOBS,
    phases=(
        matrix.started(),
        Phase("first", "5 jobs are submitted", answered(_ACCEPTED), within_s=10, act=_send_first),
        Phase(
            "paused",
            "a person pauses admission; the other 15 are submitted",
            answered(_REFUSED, "admission_closed"),
            within_s=10,
            act=_pause,
        ),
        Phase(
            "reopened",
            "a person opens the gate; the 15 come again too early, and get the stored answer",
            answered(_REFUSED, "admission_closed"),
            within_s=10,
            act=_reopen,
        ),
        Phase("due", "the callers wait as long as they were told", refusals_due(), within_s=60),
        Phase("accepted", "the 15 come again in time", answered(_REFUSED), within_s=10, act=_send_others),
    ),
    expectations=(
        decisions.some_are_refused(_ACCEPTED, "admission_closed"),
        decisions.refusals_are_stored(_REFUSED),
        decisions.ids_stay_the_same(),
        gate.went(("reject_new", "operator_reject"), ("admit", "operator_open")),
        gate.every_opening_is_proven(),
        gate.ends("admit", pin=""),
        load.every_submission_is_answered(),
        jobs.each_succeeds(matrix.COUNT),
        *jobs.common(),
    ),
)
