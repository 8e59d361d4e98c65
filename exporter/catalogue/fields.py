"""The nine stable fields (contract §2): never renamed, never prefixed."""

from __future__ import annotations

from exporter.catalogue.backlog import AGE_KEYS, DEADLINE_KEYS
from exporter.catalogue.records import gauge, measure, stateset
from exporter.figure import Figure, Method, Sample, one_of, single
from sluicegate import telemetry as names
from sluicegate.damage import AGES, DEADLINES
from sluicegate.gate import DrainState, RollbackReason
from sluicegate.telemetry import GateView, Part, Telemetry


def shown_drain_state(gate: GateView) -> DrainState:
    """Give the effective gate; what can't be read, or isn't a state, shows as drain (fail closed)."""
    if gate.readable and gate.drain_state in set(DrainState):
        return DrainState(gate.drain_state)
    return DrainState.DRAIN


def gate_is_readable(gate: GateView) -> bool:
    """Say whether the gate's records were there and made sense."""
    return gate.readable and gate.drain_state in set(DrainState)


def _drain_state(telemetry: Telemetry) -> tuple[Sample, ...]:
    return one_of(DrainState, shown_drain_state(telemetry.gate))


def _rollback_reason(telemetry: Telemetry) -> tuple[Sample, ...]:
    return one_of(RollbackReason, telemetry.gate.rollback_reason)


FIELDS: tuple[Figure[Telemetry], ...] = (
    gauge(
        names.QUEUE_AGE_P95_SECONDS,
        "95th percentile (nearest rank) of the time since ready jobs became eligible, canaries apart; 0 when no job is "
        "ready. The leading indicator of deadline risk. With dispatch edf: of the class with the shortest deadline "
        "alone, for the others wait by design.",
        measure(lambda telemetry: telemetry.queue_age_p95_seconds, *AGES),
        unit="seconds",
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        names.OLDEST_JOB_AGE_SECONDS,
        "Time since the oldest ready job became eligible, canaries apart; 0 when no job is ready.",
        measure(lambda telemetry: telemetry.oldest_job_age_seconds, *AGES),
        unit="seconds",
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        names.DEADLINE_SLACK_P10_SECONDS,
        "10th percentile (nearest rank) of deadline minus now over unfinished jobs (ready, delayed, running), canaries "
        "apart; negative once deadlines are missed; no sample without an unfinished job.",
        measure(lambda telemetry: telemetry.deadline_slack_p10_seconds, *DEADLINES),
        unit="seconds",
        keys=DEADLINE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        names.PROVIDER_5XX_RATE,
        "Provider calls answered 5xx divided by all calls that ended in the window "
        "(sluicegate_provider_window_seconds), 0..1; no sample without a call. The window starts anew at every move "
        "into recovering and at green.",
        measure(lambda telemetry: telemetry.provider.rate_5xx, Part.PROVIDER),
        unit="ratio",
        keys=("provider:{window}:{bucket}",),
        method=Method.WINDOW,
    ),
    gauge(
        names.PROVIDER_TIMEOUT_RATE,
        "Provider calls timed out divided by all calls that ended in the window "
        "(sluicegate_provider_window_seconds), 0..1; no sample without a call. The window starts anew at every move "
        "into recovering and at green.",
        measure(lambda telemetry: telemetry.provider.rate_timeout, Part.PROVIDER),
        unit="ratio",
        keys=("provider:{window}:{bucket}",),
        method=Method.WINDOW,
    ),
    gauge(
        names.WORKER_INFLIGHT,
        "Jobs under a lease that has not ended: counted, never added up.",
        measure(lambda telemetry: telemetry.worker_inflight, Part.RUNNING),
        unit="jobs",
        keys=("queue:leases",),
        method=Method.COUNT,
    ),
    stateset(
        names.DRAIN_STATE,
        "State of the gate that is in effect: the tighter of the raw keys and the last move; exactly one is 1, and it "
        "is drain where the gate can't be read.",
        _drain_state,
        keys=("drain_state", "admission", "control:gate"),
    ),
    gauge(
        names.CANARY_OK_COUNT,
        "Consecutive canary successes in this recovery; frozen once green.",
        single(lambda telemetry: telemetry.gate.canary_ok_count),
        unit="canaries",
        keys=("control:gate",),
        method=Method.STORED,
    ),
    stateset(
        names.ROLLBACK_REASON,
        "Why the gate is rolled back; at most one is 1, none while nothing is rolled back.",
        _rollback_reason,
        keys=("control:gate",),
    ),
)
