"""What the gate lets through, why, and who may move it next."""

from __future__ import annotations

from exporter.catalogue.backlog import seconds
from exporter.catalogue.fields import gate_is_readable
from exporter.catalogue.records import gauge, measure
from exporter.figure import Figure, Method, Sample, one_of, single
from sluicegate import keys
from sluicegate import telemetry as names
from sluicegate.gate import PinReason
from sluicegate.policy import Action, DecisionReason, Thresholds
from sluicegate.run_steps import VerbName
from sluicegate.telemetry import Telemetry

# The rows of the decision table: each reason belongs to one action.
DECISION_ROWS: tuple[tuple[Action, DecisionReason], ...] = (
    (Action.ROLL_BACK, DecisionReason.DUPLICATE_SIDE_EFFECT),
    (Action.HOLD, DecisionReason.CANARY_NOT_GREEN),
    (Action.DRAIN, DecisionReason.PROVIDER_OR_QUEUE_AGE),
    (Action.HOLD, DecisionReason.SLACK_LOW),
    (Action.HOLD, DecisionReason.AGE_HIGH),
    (Action.REJECT_NEW, DecisionReason.ADMISSION_THRESHOLD),
    (Action.HOLD, DecisionReason.ROLLBACK_ACTIVE),
    (Action.HOLD, DecisionReason.PINNED),
    (Action.ADMIT, DecisionReason.NORMAL),
)


# The step of a run that is in none.
NO_STEP = "none"


def _pinned(telemetry: Telemetry) -> tuple[Sample, ...]:
    pin = telemetry.gate.pin
    # A pin nobody can name still pins: it must not read as "not pinned".
    shown = pin if pin is None or pin in set(PinReason) else PinReason.CONTROL_DATA_LOST
    return one_of(PinReason, shown)


def _decision(telemetry: Telemetry) -> list[Sample]:
    last = (telemetry.gate.decision, telemetry.gate.decision_reason)
    return [((action, reason), float((action, reason) == last)) for action, reason in DECISION_ROWS]


def _run_live(telemetry: Telemetry) -> list[Sample]:
    run = telemetry.gate.run
    # Before its first step, and where a hand wrote over its name, the step is none that a label may say.
    return [] if run is None else [((run.runbook, run.step if run.step in set(VerbName) else NO_STEP), 1)]


def _run_started(telemetry: Telemetry) -> list[Sample]:
    run = telemetry.gate.run
    return [] if run is None else [((run.runbook,), seconds(run.started_at_ms))]


def _thresholds(telemetry: Telemetry) -> list[Sample]:
    return [((name,), telemetry.thresholds.get(name)) for name in Thresholds.__dataclass_fields__]


GATE: tuple[Figure[Telemetry], ...] = (
    gauge(
        names.ADMISSION_RATIO,
        "Share of new jobs that the gate admits now, 0..1: ramp, a silent controller and a closed gate included.",
        single(lambda telemetry: telemetry.gate.admission_ratio),
        unit="ratio",
        keys=(keys.DRAIN_STATE, keys.ADMISSION, keys.GATE, keys.SEEN),
        method=Method.DERIVED,
    ),
    gauge(
        names.GATE_PINNED,
        "1 for the reason why only a named person may loosen the gate; all 0 when it is not pinned.",
        _pinned,
        unit="0 or 1",
        keys=(keys.GATE,),
        method=Method.STORED,
        labels=(names.REASON_LABEL,),
    ),
    gauge(
        names.GATE_INITIALISED,
        "1 once the queue was opened by a named person; 0 before it, and when everything is gone.",
        single(lambda telemetry: float(telemetry.gate.initialised)),
        unit="0 or 1",
        keys=(keys.GATE, keys.SETTINGS),
        method=Method.STORED,
    ),
    gauge(
        names.GATE_READABLE,
        "1 when the gate's records are there and make sense; 0 shows drain_state as drain.",
        single(lambda telemetry: float(gate_is_readable(telemetry.gate))),
        unit="0 or 1",
        keys=(keys.DRAIN_STATE, keys.ADMISSION, keys.GATE, keys.EPOCH),
        method=Method.STORED,
    ),
    gauge(
        names.CONTROLLER_SEEN_TIMESTAMP_SECONDS,
        "When the controller last completed a tick, in Redis time; 0 for never.",
        single(lambda telemetry: seconds(telemetry.gate.controller_seen_ms)),
        unit="seconds",
        keys=(keys.SEEN,),
        method=Method.STORED,
    ),
    gauge(
        names.DECISION,
        "The controller's last decision and its reason: one row of its table is 1, none before the first tick.",
        _decision,
        unit="0 or 1",
        keys=(keys.DECISION,),
        method=Method.STORED,
        labels=("action", names.REASON_LABEL),
    ),
    gauge(
        names.THRESHOLD,
        "Thresholds in force, by name: the same that the controller, the alerts and the run's gates decide on.",
        _thresholds,
        unit="the unit in the name",
        keys=(keys.SETTINGS,),
        method=Method.STORED,
        labels=("name",),
    ),
    gauge(
        names.RUN_LIVE,
        "1 for the live run that holds the queue's lock, with its runbook and step (none before its first); no sample "
        "without one.",
        _run_live,
        unit="0 or 1",
        keys=(keys.LOCK_RUN, "run:{id}"),
        method=Method.STORED,
        labels=(names.RUNBOOK_LABEL, names.STEP_LABEL),
    ),
    gauge(
        names.RUN_STARTED_TIMESTAMP_SECONDS,
        "When the live run that holds the queue's lock was opened, in Redis time; no sample without one.",
        _run_started,
        unit="seconds",
        keys=(keys.LOCK_RUN, "run:{id}"),
        method=Method.STORED,
        labels=(names.RUNBOOK_LABEL,),
    ),
    gauge(
        "sluicegate_gate_since_timestamp_seconds",
        "When the gate entered the state that its last move wrote, in Redis time; no sample where it can't be read.",
        single(lambda telemetry: seconds(telemetry.gate.since_ms) if gate_is_readable(telemetry.gate) else None),
        unit="seconds",
        keys=(keys.GATE,),
        method=Method.STORED,
    ),
    gauge(
        names.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED,
        "Confirmed duplicate side effects that no named person has acknowledged; one is enough to roll back.",
        single(lambda telemetry: telemetry.gate.duplicates_unacknowledged),
        unit="duplicates",
        keys=(keys.DUPLICATES,),
        method=Method.STORED,
    ),
    gauge(
        names.CANARY_CONSECUTIVE_SUCCESSES,
        "The same value as canary_ok_count under a name that no tool mistakes for a histogram's count.",
        single(lambda telemetry: telemetry.gate.canary_ok_count),
        unit="canaries",
        keys=(keys.GATE,),
        method=Method.STORED,
    ),
    gauge(
        names.CANARIES_REQUIRED,
        "Consecutive canary successes that make a recovery green.",
        measure(lambda telemetry: telemetry.gate.canaries_required),
        unit="canaries",
        keys=(keys.SETTINGS,),
        method=Method.STORED,
    ),
    gauge(
        "sluicegate_canary_failures",
        "Canary failures in this recovery; at the contract's limit it is rolled back.",
        single(lambda telemetry: telemetry.gate.canary_failures),
        unit="canaries",
        keys=(keys.GATE,),
        method=Method.STORED,
    ),
    gauge(
        "sluicegate_canary_jobs",
        "Canaries that have not ended; they are in none of the other figures of jobs.",
        measure(lambda telemetry: telemetry.canaries),
        unit="canaries",
        keys=("queue:canary",),
        method=Method.COUNT,
    ),
)
