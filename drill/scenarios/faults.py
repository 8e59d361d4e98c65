"""Pieces that several scenarios share: how the provider gets worse, and the phases around it."""

from __future__ import annotations

from drill.rig import Rig
from drill.scenarios.conditions import accepted_for, gate_reaches, healthy_for, run_ends, run_opened
from drill.scenarios.scenario import Phase

REJECTED = ("reject_new", "admission_threshold")
DRAINED = ("drain", "provider_or_queue_age")
RECOVERING = ("recovering", "run_recover")
REOPENED = ("admit", "run_reopen")
# Contract §8: healthy first, and load goes on afterwards.
HEALTHY_S = 15
AFTERWARDS_S = 20
# The last submission of a phase comes a little before its end, and it is the one that is measured.
_SPARE_S = 5
_SOME_CALLS_FAIL = 0.08


def healthy() -> Phase:
    """Let the queue run well first."""
    return Phase("healthy", "the provider answers in time", healthy_for(HEALTHY_S), within_s=30)


def slow() -> Phase:
    """Make the provider slow until new jobs are refused."""
    return Phase(
        "slow",
        "every call takes seconds longer: the queue ages",
        gate_reaches(*REJECTED),
        within_s=60,
        act=Rig.slow_down,
    )


def failing() -> Phase:
    """Let some calls fail as well, until the queue is drained."""
    return Phase(
        "failing",
        "some calls are answered 503 as well",
        gate_reaches(*DRAINED),
        within_s=40,
        act=lambda rig: rig.break_calls(503, _SOME_CALLS_FAIL),
    )


def down() -> Phase:
    """Let every call fail until the queue is drained."""
    return Phase(
        "down",
        "every call is answered 503",
        gate_reaches(*DRAINED),
        within_s=40,
        act=lambda rig: rig.break_calls(503, 1.0),
    )


def alerted() -> Phase:
    """Wait for the run: normally an alert fires and Alertmanager's webhook opens it."""
    return Phase("alerted", "the gate is drained; an alert opens the run", run_opened(), within_s=45)


def recovered() -> Phase:
    """Wait until the run has reopened the gate and its ramp has ended."""
    return Phase("recovering", "fix, canaries, burn down, gate, ramp", run_ends("succeeded"), within_s=240)


def steady() -> Phase:
    """Let the load go on behind the open gate."""
    return Phase("steady", "the gate is open, load goes on", accepted_for(AFTERWARDS_S + _SPARE_S), within_s=60)
