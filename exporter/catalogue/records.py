"""Short ways to declare a figure of one queue: each carries the `queue` label first."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from exporter.figure import Figure, Kind, Sample, single
from sluicegate.telemetry import QUEUE_LABEL, Telemetry

Read = Callable[[Telemetry], Iterable[Sample]]


def measured(read: Read) -> Read:
    """Read nothing where the queue's stored settings are lost: what was not counted is not zero."""

    def read_measured(telemetry: Telemetry) -> Iterable[Sample]:
        lost = not telemetry.settings_digest and telemetry.gate.initialised
        return () if lost else read(telemetry)

    return read_measured


def measure(value: Callable[[Telemetry], float | None]) -> Read:
    """Read one measured value without labels of its own."""
    return measured(single(value))


def gauge(
    name: str, text: str, read: Read, *, unit: str, keys: tuple[str, ...], labels: tuple[str, ...] = ()
) -> Figure[Telemetry]:
    """Declare a value that goes up and down."""
    return Figure(name, Kind.GAUGE, unit, (QUEUE_LABEL, *labels), text, keys, read)


def counter(
    name: str, text: str, read: Read, *, unit: str, keys: tuple[str, ...], labels: tuple[str, ...] = ()
) -> Figure[Telemetry]:
    """Declare a total that lives in Redis: it survives every restart of the exporter and is never reset by a read."""
    return Figure(name, Kind.COUNTER, unit, (QUEUE_LABEL, *labels), text, keys, read)


def stateset(name: str, text: str, read: Read, *, keys: tuple[str, ...]) -> Figure[Telemetry]:
    """Declare a set of states; OpenMetrics names the label as the metric."""
    return Figure(name, Kind.STATESET, "0 or 1", (QUEUE_LABEL, name), text, keys, read)
