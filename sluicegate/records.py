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


@dataclass(frozen=True, slots=True)
class Record:
    """Name a record: the metric it is taken from, the labels it keeps and the operation."""

    metric: str
    labels: tuple[str, ...] = (telemetry.QUEUE_LABEL,)
    operation: Operation = Operation.MAX

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
CANARY_OK_COUNT = Record(telemetry.CANARY_OK_COUNT)
CLASS_AGE = Record(telemetry.CLASS_AGE_P95_SECONDS, _BY_CLASS)
CLASS_SLACK = Record(telemetry.CLASS_SLACK_P10_SECONDS, _BY_CLASS, Operation.MIN)
CONTROLLER_SEEN = Record(telemetry.CONTROLLER_SEEN_TIMESTAMP_SECONDS)
DRAIN_STATE = Record(telemetry.DRAIN_STATE, (_QUEUE, telemetry.DRAIN_STATE))
DUPLICATES = Record(telemetry.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED)
GATE_PINNED = Record(telemetry.GATE_PINNED, (_QUEUE, telemetry.REASON_LABEL))
GATE_READABLE = Record(telemetry.GATE_READABLE, operation=Operation.MIN)
INFLIGHT = Record(telemetry.WORKER_INFLIGHT)
JOBS = Record(telemetry.JOBS, (_QUEUE, telemetry.STATE_LABEL))
OLDEST_AGE = Record(telemetry.OLDEST_JOB_AGE_SECONDS)
PREDICTED_WAIT = Record(telemetry.PREDICTED_WAIT_SECONDS)
PROVIDER_5XX_RATE = Record(telemetry.PROVIDER_5XX_RATE)
PROVIDER_TIMEOUT_RATE = Record(telemetry.PROVIDER_TIMEOUT_RATE)
PROVIDER_WINDOW_CALLS = Record(telemetry.PROVIDER_WINDOW_CALLS)
PROVIDER_WINDOW_FAILED_CALLS = Record(telemetry.PROVIDER_WINDOW_FAILED_CALLS)
QUEUE_AGE = Record(telemetry.QUEUE_AGE_P95_SECONDS)
REDIS_UP = Record(telemetry.REDIS_UP, operation=Operation.MIN)
ROLLBACK_REASON = Record(telemetry.ROLLBACK_REASON, (_QUEUE, telemetry.ROLLBACK_REASON))
RUN_LIVE = Record(telemetry.RUN_LIVE, (_QUEUE, telemetry.RUNBOOK_LABEL, telemetry.STEP_LABEL))
SLACK = Record(telemetry.DEADLINE_SLACK_P10_SECONDS, operation=Operation.MIN)
SNAPSHOT = Record(telemetry.SNAPSHOT_TIMESTAMP_SECONDS)

# In the order in which the rule file writes them.
RECORDS: tuple[Record, ...] = (
    QUEUE_AGE,
    OLDEST_AGE,
    SLACK,
    CLASS_AGE,
    CLASS_SLACK,
    PREDICTED_WAIT,
    PROVIDER_5XX_RATE,
    PROVIDER_TIMEOUT_RATE,
    PROVIDER_WINDOW_CALLS,
    PROVIDER_WINDOW_FAILED_CALLS,
    JOBS,
    INFLIGHT,
    DRAIN_STATE,
    ADMISSION_RATIO,
    CANARY_OK_COUNT,
    ROLLBACK_REASON,
    GATE_PINNED,
    RUN_LIVE,
    DUPLICATES,
    CONTROLLER_SEEN,
    SNAPSHOT,
    REDIS_UP,
    GATE_READABLE,
)


class AlertName(StrEnum):
    """Name the alerts: rules define them, panels and people point at them. The comment says what each one asks for."""

    QUEUE_AGE_HIGH = "SluicegateQueueAgeHigh"  # refuse new jobs
    DEADLINE_SLACK_LOW = "SluicegateDeadlineSlackLow"  # refuse new jobs
    QUEUE_AGE_CRITICAL = "SluicegateQueueAgeCritical"  # drain
    PROVIDER_ERRORS_HIGH = "SluicegateProviderErrorsHigh"  # drain
    PROVIDER_TIMEOUTS_HIGH = "SluicegateProviderTimeoutsHigh"  # drain
    RECOVERY_HOLD = "SluicegateRecoveryHold"  # keep admission closed
    DUPLICATE_SIDE_EFFECT = "SluicegateDuplicateSideEffect"  # roll back, audit
    GATE_PINNED = "SluicegateGatePinned"  # a named person decides
    CONTROLLER_SILENT = "SluicegateControllerSilent"  # a person starts the controller
    TELEMETRY_ABSENT = "SluicegateTelemetryAbsent"  # a person brings the figures back
    TELEMETRY_STALE = "SluicegateTelemetryStale"  # a person brings the figures back
    WATCHDOG = "SluicegateWatchdog"  # nobody, as long as it is heard
