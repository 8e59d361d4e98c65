"""The same risk by class of job: names of their own, so that no total ever stands beside its parts."""

from __future__ import annotations

from collections.abc import Callable

from exporter.catalogue.backlog import DEADLINE_KEYS, jobs_by_state
from exporter.catalogue.records import Read, counter, gauge
from exporter.figure import Figure, Sample
from sluicegate import telemetry as names
from sluicegate.telemetry import CLASS_LABEL, STATE_LABEL, ClassFigures, Telemetry

DEADLINE_OUTCOMES = ("met", "missed", "expired")
CLASS_RESULTS = ("succeeded", "failed", "expired")


def _each(value: Callable[[ClassFigures], float | None]) -> Read:
    """Read one value from every class."""

    def read(telemetry: Telemetry) -> list[Sample]:
        return [((name,), value(figures)) for name, figures in telemetry.classes.items()]

    return read


def _jobs(telemetry: Telemetry) -> list[Sample]:
    return [
        ((name, state), count)
        for name, figures in telemetry.classes.items()
        for state, count in jobs_by_state(figures).items()
    ]


def _totals(counters: tuple[str, ...]) -> Read:
    """Read the named counters of every class, born at 0; a class without figures but with a history is kept."""

    def read(telemetry: Telemetry) -> list[Sample]:
        classes = dict.fromkeys([*telemetry.classes, *telemetry.class_counters])
        return [
            ((name, counter_name), telemetry.class_counters.get(name, {}).get(counter_name, 0))
            for name in classes
            for counter_name in counters
        ]

    return read


def _admitted(telemetry: Telemetry) -> list[Sample]:
    return [((name,), value) for (name, _), value in _totals(("admitted",))(telemetry)]


CLASSES: tuple[Figure[Telemetry], ...] = (
    gauge(
        names.CLASS_JOBS,
        "Jobs of a class by state before their end: pending, delayed, running, unknown, blocked; canaries apart.",
        _jobs,
        unit="jobs",
        keys=("queue:fifo:{class}:{cost_class}", "queue:delayed:{class}", "running:{class}"),
        labels=(CLASS_LABEL, STATE_LABEL),
    ),
    gauge(
        names.CLASS_AGE_P95_SECONDS,
        "95th percentile (nearest rank) of the time since the class's ready jobs became eligible; 0 with none ready.",
        _each(lambda figures: figures.queue_age_p95_seconds),
        unit="seconds",
        keys=("queue:fifo:{class}:{cost_class}",),
        labels=(CLASS_LABEL,),
    ),
    gauge(
        "sluicegate_class_oldest_job_age_seconds",
        "Time since the class's oldest ready job became eligible; 0 when none is ready.",
        _each(lambda figures: figures.oldest_job_age_seconds),
        unit="seconds",
        keys=("queue:fifo:{class}:{cost_class}",),
        labels=(CLASS_LABEL,),
    ),
    gauge(
        names.CLASS_SLACK_P10_SECONDS,
        "10th percentile (nearest rank) of deadline minus now over the class's unfinished jobs; no sample without one.",
        _each(lambda figures: figures.deadline_slack_p10_seconds),
        unit="seconds",
        keys=DEADLINE_KEYS,
        labels=(CLASS_LABEL,),
    ),
    gauge(
        "sluicegate_class_doomed_jobs",
        "Unfinished jobs of a class that can no longer be done in time.",
        _each(lambda figures: figures.doomed),
        unit="jobs",
        keys=DEADLINE_KEYS,
        labels=(CLASS_LABEL,),
    ),
    gauge(
        names.CLASS_DEADLINE_SECONDS,
        "Deadline the contract gives a job of the class.",
        _each(lambda figures: figures.deadline_seconds),
        unit="seconds",
        keys=("queue:settings",),
        labels=(CLASS_LABEL,),
    ),
    counter(
        "sluicegate_class_admitted_total",
        "Jobs of a class that were admitted.",
        _admitted,
        unit="jobs",
        keys=("counters:{class}",),
        labels=(CLASS_LABEL,),
    ),
    counter(
        "sluicegate_class_ended_total",
        "Jobs of a class that reached their end: succeeded, failed or expired.",
        _totals(CLASS_RESULTS),
        unit="jobs",
        keys=("counters:{class}",),
        labels=(CLASS_LABEL, "result"),
    ),
    counter(
        names.CLASS_DEADLINE_OUTCOMES_TOTAL,
        "Deadlines of a class by outcome: met, missed (done late, or unknown past the deadline), expired (never done).",
        _totals(DEADLINE_OUTCOMES),
        unit="jobs",
        keys=("counters:{class}",),
        labels=(CLASS_LABEL, "outcome"),
    ),
)
