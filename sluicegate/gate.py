"""Say what the gate is: its states, pins and reasons, and how it reads (contract §6). Pure.

`gate_events.py` says what can happen to it, `transition.py` which move may follow which; the functions in
`functions/` enforce the same, and a test runs both through the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DrainState(StrEnum):
    """Name the gate's state, loosest first; the comment says what leaves it."""

    ADMIT = "admit"  # the controller, tightening; a person
    REJECT_NEW = "reject_new"  # the hysteresis, when nothing is pinned and no run is live; a person
    RECOVERING = "recovering"  # the run's gate; its rollback
    DRAIN = "drain"  # a step of the lock-holding run; a person

    @property
    def tightness(self) -> int:
        """Give the place in admit < reject_new < recovering < drain."""
        return list(DrainState).index(self)


class Admission(StrEnum):
    """Name the raw admission key's values; open only in admit."""

    OPEN = "open"  # every tightening move
    CLOSED = "closed"  # whatever opens the gate


class RollbackReason(StrEnum):
    """Name why the gate is rolled back; cleared by the end of a run's ramp or a named person."""

    CANARY_FAILED = "canary_failed"  # 3 failures or no green in time
    QUEUE_AGE_NOT_RECOVERING = "queue_age_not_recovering"  # a breach from green to the ramp's end
    DUPLICATE_SIDE_EFFECT = "duplicate_side_effect"  # confirmed, not yet acknowledged by a person
    MANUAL_OPERATOR_HOLD = "manual_operator_hold"  # abort, hand edit, kill switch, expired hold


class PinReason(StrEnum):
    """Name why no timer and no webhook may loosen the gate or open a run; only a named person leaves a pin."""

    UNINITIALISED = "uninitialised"  # `queue init`
    CONTROL_DATA_LOST = "control_data_lost"  # a person who has looked at what was lost
    OPERATOR = "operator"  # the person who pinned it, or another
    HAND_EDIT = "hand_edit"  # whoever wrote the raw key, by name now
    ROLLED_BACK = "rolled_back"  # a person, after the run's report
    REPEATED_DRAIN = "repeated_drain"  # a person: the last reopening did not hold
    RUN_LOST = "run_lost"  # a person: recovering or a ramp without its run
    RUN_REFUSED = "run_refused"  # a person: cooldown, limits, kill switch or breaker
    RESTORED = "restored"  # a person: the data came from a snapshot


class Runbook(StrEnum):
    """Name the runbooks that hold the queue's lock."""

    DRAIN_AND_RECOVER = "drain-and-recover"
    ROLLBACK_AND_AUDIT = "rollback-and-audit"


class BesideRunbook(StrEnum):
    """Name the shipped runbooks that hold no lock: one of each may run beside any other (contract §7)."""

    REJECT_AND_PREPARE = "reject-and-prepare"
    HOLD_RECOVERY = "hold-recovery"
    RECONCILE_UNKNOWN = "reconcile-unknown"


class Stored(StrEnum):
    """Say whether the gate's own records can be read."""

    OK = "ok"
    UNINITIALISED = "uninitialised"  # no gate was ever opened here, or everything is gone
    UNREADABLE = "unreadable"  # a part is missing or garbage


class RawEdit(StrEnum):
    """Name what somebody wrote to a raw key with a plain client since the last move.

    The two raw keys stand beside each other: an edit of one never takes back an edit of the other.
    """

    NONE = "none"
    ADMIT = "admit"
    REJECT_NEW = "reject_new"
    RECOVERING = "recovering"
    DRAIN = "drain"
    CLOSED = "closed"  # SET admission closed
    OPEN = "open"  # SET admission open

    @property
    def on_admission(self) -> bool:
        """Say whether the edit is one of the key `admission`; all others are of `drain_state`."""
        return self in (RawEdit.CLOSED, RawEdit.OPEN)


@dataclass(frozen=True, slots=True)
class GateState:
    """Hold everything a gate move may depend on.

    `raw` is an edit of the key `drain_state` that no move has seen yet, `raw_admission` one of the key `admission`.
    `run` is the live lock-holding run; `rolling_back` means its gate move is done and its hooks are being finished.
    `behind` means the data's epoch is older than one a caller has seen. `audited` means the confirmed duplicates
    already have their rollback-and-audit run. `reopened` means an opening within the last 60 minutes.
    """

    stored: Stored = Stored.UNINITIALISED
    drain_state: DrainState = DrainState.DRAIN
    rollback_reason: RollbackReason | None = None
    pin: PinReason | None = None
    green: bool = False
    ramp: bool = False
    run: Runbook | None = None
    rolling_back: bool = False
    raw: RawEdit = RawEdit.NONE
    raw_admission: RawEdit = RawEdit.NONE
    duplicates: bool = False
    audited: bool = False
    reopened: bool = False
    behind: bool = False

    @property
    def recovery_live(self) -> bool:
        """Say whether a drain-and-recover run may still move the gate."""
        return self.run is Runbook.DRAIN_AND_RECOVER and not self.rolling_back


def raw_reading(stored: DrainState, raw: RawEdit, raw_admission: RawEdit) -> DrainState:
    """Say what the two raw keys read as together; `admission closed` in admit reads as reject_new."""
    reading = stored if raw is RawEdit.NONE else DrainState(raw.value)
    if raw_admission is RawEdit.CLOSED and reading is DrainState.ADMIT:
        return DrainState.REJECT_NEW
    return reading


def effective(state: GateState) -> DrainState:
    """Give the tighter of the raw keys and what the last move wrote; unreadable or behind reads as drain."""
    if state.stored is not Stored.OK or state.behind:
        return DrainState.DRAIN
    reading = raw_reading(state.drain_state, state.raw, state.raw_admission)
    return max(reading, state.drain_state, key=lambda drain_state: drain_state.tightness)


def effective_pin(state: GateState) -> PinReason | None:
    """Give the pin as it reads: unreadable data is pinned by itself."""
    if state.stored is Stored.UNINITIALISED:
        return PinReason.UNINITIALISED
    if state.stored is Stored.UNREADABLE or state.behind:
        return PinReason.CONTROL_DATA_LOST
    return state.pin


def admits(state: GateState) -> bool:
    """Say whether any ordinary job may be admitted (by share during a ramp)."""
    return effective(state) is DrainState.ADMIT


def pulls_backlog(state: GateState) -> bool:
    """Say whether workers may claim ordinary jobs: not in drain, and in recovering only after green."""
    reading = effective(state)
    return reading in (DrainState.ADMIT, DrainState.REJECT_NEW) or (reading is DrainState.RECOVERING and state.green)
