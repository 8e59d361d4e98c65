"""Say what can happen to the gate, who asks for it, and what may become of it (contract §6, §7). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sluicegate.gate import RawEdit, RollbackReason, Runbook
from sluicegate.policy import Action


class Answer(StrEnum):
    """Name what became of an event; everything but `moved` left the gate as it was (adoption apart)."""

    MOVED = "moved"
    UNCHANGED = "unchanged"
    STALE = "stale"  # an old epoch or fence
    UNREADABLE = "unreadable"  # the gate's records are missing, garbage or behind
    SUPPRESSED = "suppressed"  # pinned: no webhook and no timer opens a run
    ATTACHED = "attached"  # a run is live: the trigger joins it
    WAITING = "waiting"  # not confirmed by the figures
    REFUSED = "refused"  # cooldown, limits, kill switch, breaker; or a step out of order
    RUN_LIVE = "run_live"  # a person must end the run first
    DUPLICATES = "duplicates"  # a person must acknowledge the duplicates first
    NOT_EMPTY = "not_empty"  # init: a queue lives here already
    RESTORING = "restoring"  # a restore is not complete: the same restore again completes it


class Trigger(StrEnum):
    """Name who asks for a run."""

    WEBHOOK = "webhook"
    TIMER = "timer"
    PERSON = "person"


class StepMove(StrEnum):
    """Name the gate moves a live run may make."""

    RECOVER = "recover"
    GREEN = "green"
    REOPEN = "reopen"
    RAMP_END = "ramp_end"
    ROLLBACK = "rollback"
    END = "end"


class Order(StrEnum):
    """Name what a named person may ask of the gate."""

    OPEN = "open"
    OPEN_END_RUN = "open_end_run"
    DRAIN = "drain"
    REJECT = "reject"
    HOLD = "hold"
    RELEASE = "release"
    ABORT = "abort"
    ACKNOWLEDGE = "acknowledge"


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply the controller's decision; `held` says that the exit condition stood for the dwell, `stale` that the
    epoch has moved since the figures were read."""

    action: Action
    held: bool = False
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Overdue:
    """Find, in a tick, that the run's limit passed by more than its grace: a breach (contract §6)."""


@dataclass(frozen=True, slots=True)
class HandEdit:
    """Write a raw key with a plain client."""

    raw: RawEdit


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Ask for a run; `confirmed` by the figures, `allowed` by cooldown, limits, kill switch and breaker."""

    runbook: Runbook
    trigger: Trigger
    confirmed: bool = True
    allowed: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """Commit a step of the run; `fenced` says that the fence is current, `proven` that the gate's figures pass."""

    move: StepMove
    fenced: bool = True
    proven: bool = True
    reason: RollbackReason = RollbackReason.MANUAL_OPERATOR_HOLD


@dataclass(frozen=True, slots=True)
class Beside:
    """Commit the one gate move of a run that holds no lock: admit → reject_new (contract §7)."""

    fenced: bool = True


@dataclass(frozen=True, slots=True)
class Person:
    """Carry an order of a named person; `pin` is False with --no-pin."""

    order: Order
    pin: bool = True


class Happening(StrEnum):
    """Name what happens to the data and the clock, moved by nobody here."""

    INIT = "init"
    LOSE_ALL = "lose_all"
    GARBAGE = "garbage"
    LOSE_RUN = "lose_run"
    FALL_BEHIND = "fall_behind"
    DUPLICATE = "duplicate"
    HOUR_PASSED = "hour_passed"


Event = Apply | Overdue | HandEdit | OpenRun | Step | Beside | Person | Happening
