"""Every field, figure and record name that leaves this project, each once.

The nine stable fields are a public interface (contract §2): never renamed, never prefixed. Percentiles are nearest
rank: the p-th percentile of n sorted values is value number ceil(p·n) (Hyndman & Fan 1996, definition 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# The nine stable fields.
QUEUE_AGE_P95_SECONDS = "queue_age_p95_seconds"
OLDEST_JOB_AGE_SECONDS = "oldest_job_age_seconds"
DEADLINE_SLACK_P10_SECONDS = "deadline_slack_p10_seconds"
PROVIDER_5XX_RATE = "provider_5xx_rate"
PROVIDER_TIMEOUT_RATE = "provider_timeout_rate"
WORKER_INFLIGHT = "worker_inflight"
DRAIN_STATE = "drain_state"
CANARY_OK_COUNT = "canary_ok_count"
ROLLBACK_REASON = "rollback_reason"

STABLE_FIELDS: tuple[str, ...] = (
    QUEUE_AGE_P95_SECONDS,
    OLDEST_JOB_AGE_SECONDS,
    DEADLINE_SLACK_P10_SECONDS,
    PROVIDER_5XX_RATE,
    PROVIDER_TIMEOUT_RATE,
    WORKER_INFLIGHT,
    DRAIN_STATE,
    CANARY_OK_COUNT,
    ROLLBACK_REASON,
)

# Labels of the exported figures.
QUEUE_LABEL = "queue"
ACTION_LABEL = "action"
CLASS_LABEL = "class"
NAME_LABEL = "name"
OUTCOME_LABEL = "outcome"
PART_LABEL = "part"
REASON_LABEL = "reason"
RESULT_LABEL = "result"
RUNBOOK_LABEL = "runbook"
STATE_LABEL = "state"
STEP_LABEL = "step"
# The value of the state label for ready jobs: what people and the list queue:pending call them.
PENDING_STATE = "pending"

# Figures beside the nine that rules, dashboards and gates select by name.
ADMISSION_RATIO = "sluicegate_admission_ratio"
CANARIES_TOTAL = "sluicegate_canaries_total"
CANARY_CONSECUTIVE_SUCCESSES = "sluicegate_canary_consecutive_successes"
CANARIES_REQUIRED = "sluicegate_canaries_required"
CLASS_AGE_P95_SECONDS = "sluicegate_class_queue_age_p95_seconds"
CLASS_DEADLINE_OUTCOMES_TOTAL = "sluicegate_class_deadline_outcomes_total"
CLASS_DEADLINE_SECONDS = "sluicegate_class_deadline_seconds"
CLASS_JOBS = "sluicegate_class_jobs"
CLASS_PREDICTED_WAIT_SECONDS = "sluicegate_class_predicted_wait_seconds"
CLASS_QUEUE_AGE_SECONDS = "sluicegate_class_queue_age_seconds"
CLASS_SLACK_P10_SECONDS = "sluicegate_class_deadline_slack_p10_seconds"
COLLECTOR_DAMAGED = "sluicegate_collector_damaged"
CONTROLLER_SEEN_TIMESTAMP_SECONDS = "sluicegate_controller_seen_timestamp_seconds"
DECISION = "sluicegate_decision"
DOOMED_JOBS = "sluicegate_doomed_jobs"
DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED = "sluicegate_duplicate_side_effects_unacknowledged"
GATE_INITIALISED = "sluicegate_gate_initialised"
GATE_PINNED = "sluicegate_gate_pinned"
GATE_READABLE = "sluicegate_gate_readable"
JOBS = "sluicegate_jobs"
OLDEST_JOB_READY_TIMESTAMP_SECONDS = "sluicegate_oldest_job_ready_timestamp_seconds"
OLDEST_UNKNOWN_TIMESTAMP_SECONDS = "sluicegate_oldest_unknown_timestamp_seconds"
PREDICTED_WAIT_SECONDS = "sluicegate_predicted_wait_seconds"
PROVIDER_CALLS_TOTAL = "sluicegate_provider_calls_total"
PROVIDER_WINDOW_CALLS = "sluicegate_provider_window_calls"
PROVIDER_WINDOW_FAILED_CALLS = "sluicegate_provider_window_failed_calls"
PROVIDER_WINDOW_SECONDS = "sluicegate_provider_window_seconds"
REDIS_UP = "sluicegate_redis_up"
REJECT_RETURNS_TOTAL = "sluicegate_reject_returns_total"
REQUEUES_TOTAL = "sluicegate_requeues_total"
RUN_LIVE = "sluicegate_run_live"
RUN_SECONDS_TOTAL = "sluicegate_run_seconds_total"
RUN_STARTED_TIMESTAMP_SECONDS = "sluicegate_run_started_timestamp_seconds"
RUNS_REFUSED_TOTAL = "sluicegate_runs_refused_total"
RUNS_TOTAL = "sluicegate_runs_total"
SCRAPE_DURATION_SECONDS = "sluicegate_scrape_duration_seconds"
SNAPSHOT_TIMESTAMP_SECONDS = "sluicegate_snapshot_timestamp_seconds"
STEP_SECONDS_TOTAL = "sluicegate_step_seconds_total"
STEPS_TOTAL = "sluicegate_steps_total"
THRESHOLD = "sluicegate_threshold"
UNKNOWN_LEFT_TOTAL = "sluicegate_unknown_left_total"
UNKNOWN_RECONCILED_TOTAL = "sluicegate_unknown_reconciled_total"

# Of the automation process itself, in its own page of metrics.
EXECUTOR_SEEN_TIMESTAMP_SECONDS = "sluicegate_automation_executor_seen_timestamp_seconds"

# The class that stands for every one that the contract does not declare.
OTHER_CLASS = "other"


class Part(StrEnum):
    """Name what of a reading can be damaged by hand: unreadable, or less than its neighbours say it must be.

    What is read from a damaged part says nothing, and would look better than it is.
    """

    CLOCK = "clock"  # jobs are ready since a time that is yet to come
    READY = "ready"  # queue:fifo:… holds less than queue:ready:…
    DELAYED = "delayed"  # queue:delayed holds less than queue:delayed:…
    RUNNING = "running"  # queue:leases holds less than running:…
    UNKNOWN = "unknown"  # queue:unknown and queue:unknown:… differ
    BLOCKED = "blocked"  # queue:blocked and queue:blocked:… differ
    DEADLINES = "deadlines"  # an index by deadline holds less than the state's own
    PROVIDER = "provider"  # a bucket of the provider's window
    COMPLETIONS = "completions"  # a bucket of the completions
    COUNTERS = "counters"  # totals


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Hold one class's figures of the instant; ages and slack in seconds, jobs as counts.

    `younger` counts the ready jobs under each of the reading's `age_bounds_seconds`.
    """

    ready: int
    delayed: int
    running: int
    unknown: int
    blocked: int
    queue_age_p95_seconds: float
    oldest_job_age_seconds: float
    deadline_slack_p10_seconds: float | None
    doomed: int
    deadline_seconds: float | None
    queue_age_p50_seconds: float = 0.0
    queue_age_p99_seconds: float = 0.0
    oldest_ready_at_ms: int | None = None
    deadline_slack_p1_seconds: float | None = None
    deadline_slack_p50_seconds: float | None = None
    inflight: int = 0
    predicted_wait_seconds: float | None = None
    younger: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderWindow:
    """Hold the calls that ended in the current window: counts, never rates of nothing."""

    seconds: float
    calls: int
    status_5xx: int
    timeouts: int

    @property
    def failed(self) -> int:
        return self.status_5xx + self.timeouts

    @property
    def rate_5xx(self) -> float | None:
        """Give calls answered 5xx ÷ all calls, or no sample without a call."""
        return self.status_5xx / self.calls if self.calls else None

    @property
    def rate_timeout(self) -> float | None:
        """Give calls timed out ÷ all calls, or no sample without a call."""
        return self.timeouts / self.calls if self.calls else None


@dataclass(frozen=True, slots=True)
class RunView:
    """Show a live run of a queue: its id, runbook, the step it is in, its state and when it was opened (ms)."""

    run_id: str
    runbook: str
    step: str
    state: str
    started_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class GateView:
    """Show the gate at the instant: what is effective, why, and who may move it next.

    `drain_state` is the tighter of the raw keys and what the last move wrote; unreadable parts read as `drain`.
    `ramp_percent` is None outside a ramp. `run` holds the queue's lock, `besides` hold none. Timestamps are ms of
    Redis TIME, 0 for never.
    """

    drain_state: str
    readable: bool
    initialised: bool
    epoch: int
    reason: str
    actor: str
    since_ms: int
    rollback_reason: str | None
    pin: str | None
    pin_note: str
    green: bool
    canary_ok_count: int
    canaries_required: int
    canary_failures: int
    ramp_percent: int | None
    admission_ratio: float
    controller_seen_ms: int
    duplicates_unacknowledged: int
    limit_at_ms: int
    run: RunView | None
    decision: str
    decision_reason: str
    raw_drain_state: str | None
    raw_admission: str | None
    besides: tuple[RunView, ...] = ()

    @property
    def seen(self) -> str:
        """Name this gate for an order that is meant for it alone: its last move, and the duplicates known."""
        return f"{self.epoch}/{self.duplicates_unacknowledged}"


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Hold everything read from one queue in one instant of Redis TIME (`at_ms`).

    `damaged` names the parts whose figures say nothing; `broken_counters` the totals that somebody wrote over, as
    (class, name), with no class for those of the queue. `ahead` counts the ready jobs of a time to come.
    """

    queue: str
    at_ms: int
    queue_age_p95_seconds: float
    oldest_job_age_seconds: float
    oldest_ready_at_ms: int | None
    deadline_slack_p10_seconds: float | None
    provider: ProviderWindow
    worker_inflight: int
    gate: GateView
    ready: int
    delayed: int
    running: int
    unknown: int
    blocked: int
    canaries: int
    doomed: int
    completions: int
    predicted_wait_seconds: float | None
    snapshot_at_ms: int
    settings_digest: str
    counters: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, ClassFigures] = field(default_factory=dict)
    class_counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    kill_switch: str = ""
    oldest_unknown_at_ms: int | None = None
    queue_age_p50_seconds: float = 0.0
    queue_age_p99_seconds: float = 0.0
    deadline_slack_p1_seconds: float | None = None
    deadline_slack_p50_seconds: float | None = None
    age_bounds_seconds: tuple[float, ...] = ()
    ahead: int = 0
    cost_classes: tuple[str, ...] = ()
    damaged: frozenset[Part] = frozenset()
    broken_counters: frozenset[tuple[str, str]] = frozenset()

    def counter(self, name: str, job_class: str = "") -> int | None:
        """Give a total, 0 before it first moves, of the queue or of a class; None where it can't be read."""
        if self.damaged and Part.COUNTERS in self.damaged:
            return None
        if self.broken_counters and (job_class, name) in self.broken_counters:
            return None
        of_class: Mapping[str, int] = self.class_counters.get(job_class, {})
        return (of_class if job_class else self.counters).get(name, 0)

    def totals(self, names: Iterable[str], job_class: str = "") -> list[int | None]:
        """Give several totals, as `counter` gives one."""
        if self.damaged or self.broken_counters:
            return [self.counter(name, job_class) for name in names]
        get = (self.class_counters.get(job_class, {}) if job_class else self.counters).get
        return [get(name, 0) for name in names]

    @property
    def unfinished(self) -> int:
        """Count jobs that are ready, delayed or running."""
        return self.ready + self.delayed + self.running
