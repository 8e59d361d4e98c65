"""The exporter's own health: what says why a queue's figures are missing."""

from __future__ import annotations

from exporter.figure import Figure, Kind, Method, Sample, one_of, single
from exporter.reading import Failure, Reading, Scrape
from sluicegate import telemetry as names
from sluicegate.telemetry import PART_LABEL, QUEUE_LABEL, REASON_LABEL, Part


def _damaged(reading: Reading) -> list[Sample]:
    return [((part,), float(part in reading.damaged)) for part in Part] if reading.redis_up else []


READING: tuple[Figure[Reading], ...] = (
    Figure(
        names.REDIS_UP,
        Kind.GAUGE,
        "0 or 1",
        (QUEUE_LABEL,),
        "1 when this scrape read the queue from Redis; 0 means that no figure of the queue has a sample.",
        (),
        Method.OWN,
        single(lambda reading: float(reading.redis_up)),
    ),
    Figure(
        "sluicegate_collector_success",
        Kind.GAUGE,
        "0 or 1",
        (QUEUE_LABEL,),
        "1 when the queue was read and every figure of it could be made.",
        (),
        Method.OWN,
        single(lambda reading: float(reading.failure is None)),
    ),
    Figure(
        "sluicegate_collector_failure",
        Kind.GAUGE,
        "0 or 1",
        (QUEUE_LABEL, REASON_LABEL),
        "1 for the reason why figures are missing: unavailable (no answer from Redis), rejected (Redis answered "
        "with an error), late (the scrape's time ran out), damaged (what somebody wrote over or took away is left "
        "out), internal (a fault of this exporter; see its log).",
        (),
        Method.OWN,
        lambda reading: one_of(Failure, reading.failure),
    ),
    Figure(
        names.COLLECTOR_DAMAGED,
        Kind.GAUGE,
        "0 or 1",
        (QUEUE_LABEL, PART_LABEL),
        "1 for each part of the queue's data that was damaged by hand, so that no figure is made from it; no sample "
        "where the queue was not read.",
        (),
        Method.OWN,
        _damaged,
    ),
)

PAGE: tuple[Figure[Scrape], ...] = (
    Figure(
        names.SCRAPE_DURATION_SECONDS,
        Kind.GAUGE,
        "seconds",
        (),
        "Time this scrape took to read all queues, waiting for a read that another scrape began included.",
        (),
        Method.OWN,
        single(lambda scrape: scrape.duration_s),
    ),
)

BUILD: tuple[Figure[str], ...] = (
    Figure(
        "sluicegate_build_info",
        Kind.INFO,
        "1",
        ("version",),
        "Version of the exporter, as a label.",
        (),
        Method.OWN,
        lambda version: [((version,), 1)],
    ),
)
