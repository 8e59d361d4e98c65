"""Every record that the rules write and the dashboards plot, each once, named `level:metric:operation`.

A record strips what tells one exporter from another: two exporters on one queue, or one that moved, are one series.
Two exporters show the same figure a moment apart, so the worse one counts: the highest, for slack the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sluicegate import telemetry


class Operation(StrEnum):
    """Name how the figures of several exporters become one."""

    MAX = "max"
    MIN = "min"


class Source(StrEnum):
    """Name whose page of metrics a figure is from."""

    EXPORTER = "exporter"
    AUTOMATION = "automation"


@dataclass(frozen=True, slots=True)
class Record:
    """Name a record: the metric it is taken from, the labels it keeps, the operation, and whose page it is on."""

    metric: str
    labels: tuple[str, ...] = (telemetry.QUEUE_LABEL,)
    operation: Operation = Operation.MAX
    source: Source = Source.EXPORTER

    @property
    def name(self) -> str:
        """Give the record's name, for example `queue:queue_age_p95_seconds:max`."""
        return f"{'_'.join(self.labels)}:{self.metric}:{self.operation}"

    def expression(self, selector: str) -> str:
        """Give the PromQL that computes it from the exporters' series; `selector` is what goes into the braces."""
        return f"{self.operation} by ({', '.join(self.labels)}) ({self.metric}{{{selector}}})"


_QUEUE = telemetry.QUEUE_LABEL
_BY_CLASS = (_QUEUE, telemetry.CLASS_LABEL)

ADMISSION_RATIO = Record(telemetry.ADMISSION_RATIO, operation=Operation.MIN)
CANARIES = Record(telemetry.CANARIES_TOTAL, (_QUEUE, telemetry.RESULT_LABEL))
CANARIES_REQUIRED = Record(telemetry.CANARIES_REQUIRED)
CANARY_OK_COUNT = Record(telemetry.CANARY_OK_COUNT)
CLASS_AGE = Record(telemetry.CLASS_AGE_P95_SECONDS, _BY_CLASS)
CLASS_DEADLINE = Record(telemetry.CLASS_DEADLINE_SECONDS, _BY_CLASS)
CLASS_JOBS = Record(telemetry.CLASS_JOBS, (*_BY_CLASS, telemetry.STATE_LABEL))
CLASS_OUTCOMES = Record(telemetry.CLASS_DEADLINE_OUTCOMES_TOTAL, (*_BY_CLASS, telemetry.OUTCOME_LABEL))
CLASS_PREDICTED_WAIT = Record(telemetry.CLASS_PREDICTED_WAIT_SECONDS, _BY_CLASS)
CLASS_SLACK = Record(telemetry.CLASS_SLACK_P10_SECONDS, _BY_CLASS, Operation.MIN)
CONTROLLER_SEEN = Record(telemetry.CONTROLLER_SEEN_TIMESTAMP_SECONDS)
DAMAGED = Record(telemetry.COLLECTOR_DAMAGED, (_QUEUE, telemetry.PART_LABEL))
DECISION = Record(telemetry.DECISION, (_QUEUE, telemetry.ACTION_LABEL, telemetry.REASON_LABEL))
DRAIN_STATE = Record(telemetry.DRAIN_STATE, (_QUEUE, telemetry.DRAIN_STATE))
DUPLICATES = Record(telemetry.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED)
EXECUTOR_SEEN = Record(telemetry.EXECUTOR_SEEN_TIMESTAMP_SECONDS, source=Source.AUTOMATION)
GATE_PINNED = Record(telemetry.GATE_PINNED, (_QUEUE, telemetry.REASON_LABEL))
GATE_READABLE = Record(telemetry.GATE_READABLE, operation=Operation.MIN)
INFLIGHT = Record(telemetry.WORKER_INFLIGHT)
JOBS = Record(telemetry.JOBS, (_QUEUE, telemetry.STATE_LABEL))
OLDEST_AGE = Record(telemetry.OLDEST_JOB_AGE_SECONDS)
OLDEST_UNKNOWN = Record(telemetry.OLDEST_UNKNOWN_TIMESTAMP_SECONDS, operation=Operation.MIN)
PROVIDER_5XX_RATE = Record(telemetry.PROVIDER_5XX_RATE)
PROVIDER_TIMEOUT_RATE = Record(telemetry.PROVIDER_TIMEOUT_RATE)
PROVIDER_WINDOW_CALLS = Record(telemetry.PROVIDER_WINDOW_CALLS)
PROVIDER_WINDOW_FAILED_CALLS = Record(telemetry.PROVIDER_WINDOW_FAILED_CALLS)
QUEUE_AGE = Record(telemetry.QUEUE_AGE_P95_SECONDS)
REDIS_UP = Record(telemetry.REDIS_UP, operation=Operation.MIN)
REJECT_RETURNS = Record(telemetry.REJECT_RETURNS_TOTAL)
ROLLBACK_REASON = Record(telemetry.ROLLBACK_REASON, (_QUEUE, telemetry.ROLLBACK_REASON))
RUN_LIVE = Record(telemetry.RUN_LIVE, (_QUEUE, telemetry.RUNBOOK_LABEL, telemetry.STEP_LABEL))
RUN_SECONDS = Record(telemetry.RUN_SECONDS_TOTAL, (_QUEUE, telemetry.RESULT_LABEL))
RUN_STARTED = Record(telemetry.RUN_STARTED_TIMESTAMP_SECONDS, (_QUEUE, telemetry.RUNBOOK_LABEL))
RUNS = Record(telemetry.RUNS_TOTAL, (_QUEUE, telemetry.RESULT_LABEL))
RUNS_REFUSED = Record(telemetry.RUNS_REFUSED_TOTAL, (_QUEUE, telemetry.REASON_LABEL))
SLACK = Record(telemetry.DEADLINE_SLACK_P10_SECONDS, operation=Operation.MIN)
SNAPSHOT = Record(telemetry.SNAPSHOT_TIMESTAMP_SECONDS)
STEP_SECONDS = Record(telemetry.STEP_SECONDS_TOTAL, (_QUEUE, telemetry.STEP_LABEL))
STEPS = Record(telemetry.STEPS_TOTAL, (_QUEUE, telemetry.STEP_LABEL, telemetry.RESULT_LABEL))
THRESHOLD = Record(telemetry.THRESHOLD, (_QUEUE, telemetry.NAME_LABEL))
UNKNOWN_LEFT = Record(telemetry.UNKNOWN_LEFT_TOTAL)
UNKNOWN_RECONCILED = Record(telemetry.UNKNOWN_RECONCILED_TOTAL)

# The dashboard that every alert links to: rules name it, dashboards draw it; and the one about runs beside it.
DASHBOARD_UID = "sluicegate-overview"
RUNS_DASHBOARD_UID = "sluicegate-runs"

# In the order in which the rule file writes them.
RECORDS: tuple[Record, ...] = (
    QUEUE_AGE,
    OLDEST_AGE,
    SLACK,
    CLASS_AGE,
    CLASS_SLACK,
    CLASS_JOBS,
    CLASS_DEADLINE,
    CLASS_OUTCOMES,
    CLASS_PREDICTED_WAIT,
    PROVIDER_5XX_RATE,
    PROVIDER_TIMEOUT_RATE,
    PROVIDER_WINDOW_CALLS,
    PROVIDER_WINDOW_FAILED_CALLS,
    JOBS,
    INFLIGHT,
    OLDEST_UNKNOWN,
    UNKNOWN_LEFT,
    UNKNOWN_RECONCILED,
    DRAIN_STATE,
    DECISION,
    REJECT_RETURNS,
    THRESHOLD,
    ADMISSION_RATIO,
    CANARY_OK_COUNT,
    CANARIES_REQUIRED,
    CANARIES,
    ROLLBACK_REASON,
    GATE_PINNED,
    RUN_LIVE,
    RUN_STARTED,
    RUNS,
    RUN_SECONDS,
    RUNS_REFUSED,
    STEPS,
    STEP_SECONDS,
    DUPLICATES,
    CONTROLLER_SEEN,
    EXECUTOR_SEEN,
    SNAPSHOT,
    DAMAGED,
    REDIS_UP,
    GATE_READABLE,
)


class AlertName(StrEnum):
    """Name the alerts: rules define them, panels and people point at them. The comment says what each one asks for."""

    QUEUE_AGE_HIGH = "SluicegateQueueAgeHigh"  # refuse new jobs
    DEADLINE_SLACK_LOW = "SluicegateDeadlineSlackLow"  # refuse new jobs
    DEADLINE_BREACH_FORECAST = "SluicegateDeadlineBreachForecast"  # a person looks before deadlines are missed
    NEW_WORK_WILL_MISS = "SluicegateNewWorkWillMiss"  # refuse new jobs of that class
    DEADLINE_BUDGET_BURN_FAST = "SluicegateDeadlineBudgetBurnFast"  # a person, now
    DEADLINE_BUDGET_BURN_SLOW = "SluicegateDeadlineBudgetBurnSlow"  # a person, in the morning
    QUEUE_AGE_CRITICAL = "SluicegateQueueAgeCritical"  # drain
    PROVIDER_ERRORS_HIGH = "SluicegateProviderErrorsHigh"  # drain
    PROVIDER_TIMEOUTS_HIGH = "SluicegateProviderTimeoutsHigh"  # drain
    RECOVERY_HOLD = "SluicegateRecoveryHold"  # keep admission closed
    DUPLICATE_SIDE_EFFECT = "SluicegateDuplicateSideEffect"  # roll back, audit
    REOPENED_UNSAFE = "SluicegateReopenedUnsafe"  # a named person closes
    UNKNOWN_NOT_RECONCILED = "SluicegateUnknownNotReconciled"  # a person finds out what happened
    UNKNOWN_RISING = "SluicegateUnknownRising"  # a person looks at the workers
    UNKNOWN_REPLAYED = "SluicegateUnknownReplayed"  # a person audits the keys
    JOBS_BLOCKED = "SluicegateJobsBlocked"  # a named person decides
    LEASE_LEAK = "SluicegateLeaseLeak"  # a person looks at the sweep
    CONTRACT_EXCEEDED = "SluicegateContractExceeded"  # a person looks at who submits
    DECISION_NOT_APPLIED = "SluicegateDecisionNotApplied"  # a named person closes
    GATE_STUCK_CLOSED = "SluicegateGateStuckClosed"  # a person looks why
    GATE_FLAPPING = "SluicegateGateFlapping"  # a person looks at the thresholds
    GATE_PINNED = "SluicegateGatePinned"  # a named person decides
    CONTROLLER_SILENT = "SluicegateControllerSilent"  # a person starts the controller
    EXECUTOR_DEAD = "SluicegateExecutorDead"  # a person starts the executor
    EXECUTOR_HOLDING = "SluicegateExecutorHolding"  # a person gives the run what it waits for
    THRESHOLD_DRIFT = "SluicegateThresholdDrift"  # a person puts one file into force
    TELEMETRY_DAMAGED = "SluicegateTelemetryDamaged"  # a person puts the data right
    TELEMETRY_BLIND = "SluicegateTelemetryBlind"  # a person brings the figures back
    TELEMETRY_ABSENT = "SluicegateTelemetryAbsent"  # a person brings the figures back
    TELEMETRY_STALE = "SluicegateTelemetryStale"  # a person brings the figures back
    WATCHDOG = "SluicegateWatchdog"  # nobody, as long as it is heard
