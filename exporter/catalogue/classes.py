"""The same risk by class of job: names of their own, so that no total ever stands beside its parts.

The classes are those that the contract declares, and `other` for all that it does not, or not any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from exporter.catalogue.backlog import AGE_KEYS, DEADLINE_KEYS, ready_at, seconds
from exporter.catalogue.records import Read, counter, gauge, measured
from exporter.figure import Figure, Kind, Method, Sample
from sluicegate import telemetry as names
from sluicegate.admission import RefusalReason
from sluicegate.damage import AGES, DEADLINES, known_jobs
from sluicegate.telemetry import CLASS_LABEL, QUEUE_LABEL, REASON_LABEL, STATE_LABEL, ClassFigures, Part, Telemetry

DEADLINE_OUTCOMES = ("met", "missed", "expired")
CLASS_RESULTS = ("succeeded", "failed", "expired")
_TOTAL_KEYS = ("counters:{class}",)


def _each(value: Callable[[ClassFigures], float | None], *parts: Part) -> Read:
    """Read one value from every class."""

    def read(telemetry: Telemetry) -> list[Sample]:
        return [((name,), value(figures)) for name, figures in telemetry.classes.items()]

    return measured(read, *parts)


def _jobs(telemetry: Telemetry) -> list[Sample]:
    return [
        ((name, state), count)
        for name, figures in telemetry.classes.items()
        for state, count in known_jobs(telemetry, figures).items()
    ]


def _p95_ready_at(telemetry: Telemetry) -> list[Sample]:
    return [
        ((name,), ready_at(telemetry.at_ms, figures.queue_age_p95_seconds))
        for name, figures in telemetry.classes.items()
        if figures.ready
    ]


def _ages(telemetry: Telemetry) -> list[Sample]:
    """Give the buckets of every class; the last holds all."""
    bounds = [repr(bound) for bound in telemetry.age_bounds_seconds]
    return [
        ((name, bound), count)
        for name, figures in telemetry.classes.items()
        for bound, count in zip([*bounds, "+Inf"], [*figures.younger, figures.ready], strict=True)
    ]


def _totals(counters: tuple[str, ...]) -> Read:
    """Read the named counters of every class, born at 0."""

    def read(telemetry: Telemetry) -> list[Sample]:
        return [
            ((name, counted), value)
            for name in telemetry.classes
            for counted, value in zip(counters, telemetry.totals(counters, name), strict=True)
        ]

    return read


def _admitted(telemetry: Telemetry) -> list[Sample]:
    return [((name,), telemetry.counter("admitted", name)) for name in telemetry.classes]


def _refusals(telemetry: Telemetry) -> list[Sample]:
    """Give the refusals of every class by reason, born at 0; of the limits its own and those of the cost classes."""
    samples: list[Sample] = []
    for name in telemetry.classes:
        known = _known_refusals(name, telemetry.cost_classes)
        samples += zip(known, telemetry.totals(known.values(), name), strict=True)
    return samples


@lru_cache(maxsize=256)
def _known_refusals(name: str, cost_classes: tuple[str, ...]) -> Mapping[tuple[str, ...], str]:
    """Give the labels of each refusal that a class of a contract with these cost classes knows, and their counters."""
    limits = (f"{limited}_limit" for limited in (name, *cost_classes))
    return {(name, reason): f"refused:{reason}" for reason in (*map(str, RefusalReason), *limits)}


def _class_gauge(
    name: str, text: str, read: Read, *, keys: tuple[str, ...], method: Method, unit: str = "seconds"
) -> Figure[Telemetry]:
    return gauge(name, text, read, unit=unit, keys=keys, method=method, labels=(CLASS_LABEL,))


CLASSES: tuple[Figure[Telemetry], ...] = (
    gauge(
        names.CLASS_JOBS,
        "Jobs of a class by state before their end: pending, delayed, running, unknown, blocked; canaries apart.",
        _jobs,
        unit="jobs",
        keys=(*AGE_KEYS, "queue:delayed:{class}", "running:{class}", "queue:unknown:{class}", "queue:blocked:{class}"),
        method=Method.COUNT,
        labels=(CLASS_LABEL, STATE_LABEL),
    ),
    Figure(
        names.CLASS_QUEUE_AGE_SECONDS,
        Kind.GAUGE_HISTOGRAM,
        "seconds",
        (QUEUE_LABEL, CLASS_LABEL, "le"),
        "Ready jobs of a class by the time since they became eligible, now: sum by (le) gives the queue's. The age "
        "thresholds are among the bounds; a job of exactly a bound counts as over it, as in every decision, so "
        "histogram_quantile(0.95, …) > threshold says the same as the gauge's >=. Without _gsum: no sum is kept.",
        AGE_KEYS,
        Method.COUNT,
        measured(_ages, *AGES),
    ),
    _class_gauge(
        "sluicegate_class_queue_age_p50_seconds",
        "Median (nearest rank) of the time since the class's ready jobs became eligible; 0 with none ready.",
        _each(lambda figures: figures.queue_age_p50_seconds, *AGES),
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        names.CLASS_AGE_P95_SECONDS,
        "95th percentile (nearest rank) of the time since the class's ready jobs became eligible; 0 with none ready.",
        _each(lambda figures: figures.queue_age_p95_seconds, *AGES),
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_queue_age_p99_seconds",
        "99th percentile (nearest rank) of the time since the class's ready jobs became eligible; 0 with none ready.",
        _each(lambda figures: figures.queue_age_p99_seconds, *AGES),
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_oldest_job_age_seconds",
        "Time since the class's oldest ready job became eligible; 0 when none is ready.",
        _each(lambda figures: figures.oldest_job_age_seconds, *AGES),
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_oldest_job_ready_timestamp_seconds",
        "When the class's oldest ready job became eligible, in Redis time; no sample when none is ready.",
        _each(lambda figures: seconds(figures.oldest_ready_at_ms), *AGES),
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_queue_age_p95_ready_timestamp_seconds",
        "When the job at the class's age p95 became eligible, in Redis time; no sample when none is ready.",
        measured(_p95_ready_at, *AGES),
        keys=AGE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_deadline_slack_p1_seconds",
        "1st percentile (nearest rank) of deadline minus now over the class's unfinished jobs; no sample without one.",
        _each(lambda figures: figures.deadline_slack_p1_seconds, *DEADLINES),
        keys=DEADLINE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        names.CLASS_SLACK_P10_SECONDS,
        "10th percentile (nearest rank) of deadline minus now over the class's unfinished jobs; no sample without one.",
        _each(lambda figures: figures.deadline_slack_p10_seconds, *DEADLINES),
        keys=DEADLINE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_deadline_slack_p50_seconds",
        "Median (nearest rank) of deadline minus now over the class's unfinished jobs; no sample without one.",
        _each(lambda figures: figures.deadline_slack_p50_seconds, *DEADLINES),
        keys=DEADLINE_KEYS,
        method=Method.RANK,
    ),
    _class_gauge(
        "sluicegate_class_doomed_jobs",
        "Unfinished jobs of a class that can no longer be done in time.",
        _each(lambda figures: figures.doomed, *DEADLINES),
        unit="jobs",
        keys=DEADLINE_KEYS,
        method=Method.COUNT,
    ),
    _class_gauge(
        "sluicegate_class_inflight",
        "Jobs of a class under a lease that has not ended: its part of worker_inflight, canaries apart.",
        _each(lambda figures: figures.inflight, Part.RUNNING, Part.DEADLINES),
        unit="jobs",
        keys=("queue:leases", "running:{class}"),
        method=Method.COUNT,
    ),
    _class_gauge(
        names.CLASS_PREDICTED_WAIT_SECONDS,
        "Wait that admission holds against the deadline of a job of the class: the whole queue's or, with "
        "backlog_limit, that of the class's own jobs at its share of the workers; no sample without a prediction.",
        _each(
            lambda figures: figures.predicted_wait_seconds,
            Part.READY,
            Part.DELAYED,
            Part.DEADLINES,
            Part.COMPLETIONS,
        ),
        keys=(*AGE_KEYS, "queue:delayed:{class}", "done:{bucket}", "queue:settings"),
        method=Method.DERIVED,
    ),
    _class_gauge(
        names.CLASS_DEADLINE_SECONDS,
        "Deadline the contract gives a job of the class.",
        _each(lambda figures: figures.deadline_seconds),
        keys=("queue:settings",),
        method=Method.STORED,
    ),
    counter(
        "sluicegate_class_admitted_total",
        "Jobs of a class that were admitted.",
        _admitted,
        unit="jobs",
        keys=_TOTAL_KEYS,
        labels=(CLASS_LABEL,),
    ),
    counter(
        "sluicegate_class_refusals_total",
        "Submissions of a class that were refused, by reason; those of undeclared classes are `other`'s.",
        _refusals,
        unit="decisions",
        keys=_TOTAL_KEYS,
        labels=(CLASS_LABEL, REASON_LABEL),
    ),
    counter(
        "sluicegate_class_ended_total",
        "Jobs of a class that reached their end: succeeded, failed or expired.",
        _totals(CLASS_RESULTS),
        unit="jobs",
        keys=_TOTAL_KEYS,
        labels=(CLASS_LABEL, "result"),
    ),
    counter(
        names.CLASS_DEADLINE_OUTCOMES_TOTAL,
        "Deadlines of a class by outcome: met, missed (done late, or unknown past the deadline), expired (never done).",
        _totals(DEADLINE_OUTCOMES),
        unit="jobs",
        keys=_TOTAL_KEYS,
        labels=(CLASS_LABEL, "outcome"),
    ),
)
