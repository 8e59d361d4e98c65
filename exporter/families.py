"""Turn what was read into metric families, fresh for every scrape. Pure.

A page is written without them, line by line (see rendering.py); they are what its lines are checked against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.metrics_core import Metric

from exporter.catalogue import BUILD, PAGE, QUEUE_FIGURES, READING
from exporter.figure import family
from exporter.reading import Scrape
from sluicegate import __version__
from sluicegate.telemetry import Telemetry


def queue_families(telemetries: Iterable[Telemetry]) -> list[Metric]:
    """Give every family of the catalogue with the samples of these queues; without a queue, with none."""
    sources = [((telemetry.queue,), telemetry) for telemetry in telemetries]
    return [family(figure, sources) for figure in QUEUE_FIGURES]


def own_families(scrape: Scrape) -> list[Metric]:
    """Give the families on the exporter's own health in this scrape."""
    readings = [((reading.queue,), reading) for reading in scrape.readings]
    return [
        *(family(figure, readings) for figure in READING),
        *(family(figure, [((), scrape)]) for figure in PAGE),
        *(family(figure, [((), __version__)]) for figure in BUILD),
    ]


def page(scrape: Scrape) -> list[Metric]:
    """Give all families of a scrape; a queue that could not be read adds no sample and takes none from the others."""
    read = [reading.telemetry for reading in scrape.readings if reading.telemetry is not None]
    return [*merged([queue_families([telemetry]) for telemetry in read]), *own_families(scrape)]


def merged(parts: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Join the families of several queues by name, in the catalogue's order: a page says each name once."""
    joined = {empty.name: empty for empty in queue_families([])}
    for families in parts:
        for part in families:
            joined[part.name].samples.extend(part.samples)
    return list(joined.values())
