"""How much work there is, and how much of it is already lost."""

from __future__ import annotations

from exporter.catalogue.records import gauge, measure, measured
from exporter.figure import Figure, Sample, single
from sluicegate import telemetry as names
from sluicegate.job import JobState
from sluicegate.telemetry import ClassFigures, Telemetry

# The unfinished by deadline: the ready, the delayed and the running.
DEADLINE_KEYS = ("queue:ready:{class}:{cost_class}", "queue:delayed:{class}", "running:{class}")
STATE_KEYS = ("queue:fifo:{class}:{cost_class}", "queue:delayed", "queue:leases", "queue:unknown", "queue:blocked")


def jobs_by_state(figures: Telemetry | ClassFigures) -> dict[str, int]:
    """Give the count of each state before the end; they are never summed into one figure."""
    return {
        names.PENDING_STATE: figures.ready,
        JobState.DELAYED: figures.delayed,
        JobState.RUNNING: figures.running,
        JobState.UNKNOWN: figures.unknown,
        JobState.BLOCKED: figures.blocked,
    }


def seconds(milliseconds: int | None) -> float | None:
    """Give a time of Redis TIME in seconds."""
    return None if milliseconds is None else milliseconds / 1000


def _jobs(telemetry: Telemetry) -> list[Sample]:
    return [((state,), count) for state, count in jobs_by_state(telemetry).items()]


BACKLOG: tuple[Figure[Telemetry], ...] = (
    gauge(
        names.JOBS,
        "Jobs by state before their end: pending (ready to run), delayed, running, unknown, blocked; canaries apart.",
        measured(_jobs),
        unit="jobs",
        keys=STATE_KEYS,
        labels=(names.STATE_LABEL,),
    ),
    gauge(
        names.DOOMED_JOBS,
        "Unfinished jobs that can no longer be done in time, though their deadline may still lie ahead.",
        measure(lambda telemetry: telemetry.doomed),
        unit="jobs",
        keys=DEADLINE_KEYS,
    ),
    gauge(
        names.PREDICTED_WAIT_SECONDS,
        "Wait a job submitted now would see, from the backlog and the completions in the window; no sample with too "
        "few completions to predict from.",
        measure(lambda telemetry: telemetry.predicted_wait_seconds),
        unit="seconds",
        keys=("queue:fifo:{class}:{cost_class}", "done:{bucket}"),
    ),
    gauge(
        "sluicegate_window_completions",
        "Jobs completed in the window; with too few of them no wait is predicted and nothing refused for it.",
        measure(lambda telemetry: telemetry.completions),
        unit="jobs",
        keys=("done:{bucket}",),
    ),
    gauge(
        names.OLDEST_JOB_READY_TIMESTAMP_SECONDS,
        "When the oldest ready job became eligible, in Redis time; no sample when no job is ready. "
        "time() minus this keeps rising even if the exporter stops.",
        single(lambda telemetry: seconds(telemetry.oldest_ready_at_ms)),
        unit="seconds",
        keys=("queue:fifo:{class}:{cost_class}",),
    ),
    gauge(
        names.OLDEST_UNKNOWN_TIMESTAMP_SECONDS,
        "When the job that has been unknown for longest became so, in Redis time; no sample when none is unknown.",
        single(lambda telemetry: seconds(telemetry.oldest_unknown_at_ms)),
        unit="seconds",
        keys=("queue:unknown",),
    ),
    gauge(
        names.SNAPSHOT_TIMESTAMP_SECONDS,
        "Redis time of the one instant all figures of the queue are from; it stands still only where they do.",
        single(lambda telemetry: seconds(telemetry.at_ms)),
        unit="seconds",
        keys=("TIME",),
    ),
    gauge(
        "sluicegate_last_snapshot_timestamp_seconds",
        "When a run last took a snapshot of the queue, in Redis time; 0 for never.",
        single(lambda telemetry: seconds(telemetry.snapshot_at_ms)),
        unit="seconds",
        keys=("control:snapshot",),
    ),
)
