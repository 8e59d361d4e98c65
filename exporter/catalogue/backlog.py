"""How much work there is, and how much of it is already lost."""

from __future__ import annotations

from exporter.catalogue.records import gauge, measure
from exporter.figure import Figure, Kind, Method, Sample, single
from sluicegate import telemetry as names
from sluicegate.damage import AGES, DEADLINES, known_jobs
from sluicegate.telemetry import QUEUE_LABEL, Part, Telemetry

AGE_KEYS = ("queue:fifo:{class}:{cost_class}",)
# The unfinished by deadline: the ready, the delayed and the running.
DEADLINE_KEYS = ("queue:ready:{class}:{cost_class}", "queue:delayed:{class}", "running:{class}")
STATE_KEYS = (*AGE_KEYS, "queue:delayed", "queue:leases", "queue:unknown", "queue:blocked")
# Of the ways to know an age, the one of a queue whose jobs were stamped as they became eligible.
AGE_METHOD = "exact"


def seconds(milliseconds: int | None) -> float | None:
    """Give a time of Redis TIME in seconds."""
    return None if milliseconds is None else milliseconds / 1000


def ready_at(at_ms: int, age_seconds: float) -> float:
    """Give since when a job of an age has been ready, in Redis time; whole ms, so that it stands still with the job."""
    return round(at_ms / 1000 - age_seconds, 3)


def _p95_ready_at(telemetry: Telemetry) -> float | None:
    return ready_at(telemetry.at_ms, telemetry.queue_age_p95_seconds) if telemetry.ready else None


def _jobs(telemetry: Telemetry) -> list[Sample]:
    return [((state,), count) for state, count in known_jobs(telemetry, telemetry).items()]


BACKLOG: tuple[Figure[Telemetry], ...] = (
    gauge(
        names.JOBS,
        "Jobs by state before their end: pending (ready to run), delayed, running, unknown, blocked; canaries apart.",
        _jobs,
        unit="jobs",
        keys=STATE_KEYS,
        method=Method.COUNT,
        labels=(names.STATE_LABEL,),
    ),
    gauge(
        "sluicegate_queue_age_p50_seconds",
        "Median (nearest rank) of the time since ready jobs became eligible; of the same jobs as "
        "queue_age_p95_seconds.",
        measure(lambda telemetry: telemetry.queue_age_p50_seconds, *AGES),
        unit="seconds",
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        "sluicegate_queue_age_p99_seconds",
        "99th percentile (nearest rank) of the time since ready jobs became eligible; of the same jobs as "
        "queue_age_p95_seconds.",
        measure(lambda telemetry: telemetry.queue_age_p99_seconds, *AGES),
        unit="seconds",
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        "sluicegate_deadline_slack_p1_seconds",
        "1st percentile (nearest rank) of deadline minus now over unfinished jobs; no sample without one.",
        measure(lambda telemetry: telemetry.deadline_slack_p1_seconds, *DEADLINES),
        unit="seconds",
        keys=DEADLINE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        "sluicegate_deadline_slack_p50_seconds",
        "Median (nearest rank) of deadline minus now over unfinished jobs; no sample without one.",
        measure(lambda telemetry: telemetry.deadline_slack_p50_seconds, *DEADLINES),
        unit="seconds",
        keys=DEADLINE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        names.DOOMED_JOBS,
        "Unfinished jobs that can no longer be done in time: ready or delayed with less than margin_s left, or running "
        "past their deadline. A retry whose time would leave less than margin_s is never parked: it expires at once.",
        measure(lambda telemetry: telemetry.doomed, *DEADLINES),
        unit="jobs",
        keys=DEADLINE_KEYS,
        method=Method.COUNT,
    ),
    gauge(
        names.PREDICTED_WAIT_SECONDS,
        "Wait a job submitted now would see, from the backlog and the completions in the window; no sample with too "
        "few completions to predict from.",
        measure(lambda telemetry: telemetry.predicted_wait_seconds, Part.READY, Part.COMPLETIONS),
        unit="seconds",
        keys=(*AGE_KEYS, "done:{bucket}"),
        method=Method.DERIVED,
    ),
    gauge(
        "sluicegate_window_completions",
        "Jobs completed in the window; with too few of them no wait is predicted and nothing refused for it.",
        measure(lambda telemetry: telemetry.completions, Part.COMPLETIONS),
        unit="jobs",
        keys=("done:{bucket}",),
        method=Method.WINDOW,
    ),
    gauge(
        names.OLDEST_JOB_READY_TIMESTAMP_SECONDS,
        "When the oldest ready job became eligible, in Redis time; no sample when no job is ready. "
        "time() minus this keeps rising even if the exporter stops.",
        measure(lambda telemetry: seconds(telemetry.oldest_ready_at_ms), *AGES),
        unit="seconds",
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        "sluicegate_queue_age_p95_ready_timestamp_seconds",
        "When the job at queue_age_p95_seconds became eligible, in Redis time; no sample when no job is ready.",
        measure(_p95_ready_at, *AGES),
        unit="seconds",
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    gauge(
        "sluicegate_future_ready_jobs",
        "Ready jobs that became eligible over a second ahead of Redis' clock: it was set back, or somebody wrote the "
        "instant. While there are any, ages and slack have no sample.",
        measure(lambda telemetry: telemetry.ahead),
        unit="jobs",
        keys=AGE_KEYS,
        method=Method.COUNT,
    ),
    Figure(
        "sluicegate_age_method_info",
        Kind.INFO,
        "1",
        (QUEUE_LABEL, "method"),
        "How the ages of this queue are known: exact (every ready job has its instant in a sorted set).",
        (),
        Method.OWN,
        lambda _: [((AGE_METHOD,), 1)],
    ),
    gauge(
        names.OLDEST_UNKNOWN_TIMESTAMP_SECONDS,
        "When the job that has been unknown for longest became so, in Redis time; no sample when none is unknown.",
        measure(lambda telemetry: seconds(telemetry.oldest_unknown_at_ms), Part.UNKNOWN),
        unit="seconds",
        keys=("queue:unknown",),
        method=Method.RANK,
    ),
    gauge(
        names.SNAPSHOT_TIMESTAMP_SECONDS,
        "Redis time of the one instant all figures of the queue are from; it stands still only where they do.",
        single(lambda telemetry: seconds(telemetry.at_ms)),
        unit="seconds",
        keys=("TIME",),
        method=Method.CLOCK,
    ),
    gauge(
        "sluicegate_last_snapshot_timestamp_seconds",
        "When a run last took a snapshot of the queue, in Redis time; 0 for never.",
        single(lambda telemetry: seconds(telemetry.snapshot_at_ms)),
        unit="seconds",
        keys=("control:snapshot",),
        method=Method.STORED,
    ),
)
