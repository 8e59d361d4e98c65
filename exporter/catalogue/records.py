"""Short ways to declare a figure of one queue: each carries the `queue` label first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from exporter.figure import Figure, Kind, Method, Sample, single
from sluicegate.damage import was_measured
from sluicegate.telemetry import QUEUE_LABEL, Part, Telemetry

Read = Callable[[Telemetry], Iterable[Sample]]


def measured(read: Read, *parts: Part) -> Read:
    """Read nothing where what is read from these parts says nothing."""
    return lambda telemetry: read(telemetry) if was_measured(telemetry, *parts) else ()


def measure(value: Callable[[Telemetry], float | None], *parts: Part) -> Read:
    """Read one measured value without labels of its own."""
    return measured(single(value), *parts)


def total(name: str) -> Read:
    """Read one total, born at 0."""
    return single(lambda telemetry: telemetry.counter(name))


def totals(names: Mapping[str, str]) -> Read:
    """Read a total for each label value → counter name, born at 0."""
    return named_totals({(str(value),): name for value, name in names.items()})


def named_totals(names: Mapping[tuple[str, ...], str]) -> Read:
    """Read a total for each combination of label values → counter name, born at 0."""
    labels, counters = tuple(names), tuple(names.values())
    return lambda telemetry: zip(labels, telemetry.totals(counters), strict=True)


def gauge(
    name: str,
    text: str,
    read: Read,
    *,
    unit: str,
    keys: tuple[str, ...],
    method: Method,
    labels: tuple[str, ...] = (),
) -> Figure[Telemetry]:
    """Declare a value that goes up and down."""
    return Figure(name, Kind.GAUGE, unit, (QUEUE_LABEL, *labels), text, keys, method, read)


def counter(
    name: str, text: str, read: Read, *, unit: str, keys: tuple[str, ...], labels: tuple[str, ...] = ()
) -> Figure[Telemetry]:
    """Declare a total that lives in Redis: it survives every restart of the exporter and is never reset by a read."""
    return Figure(name, Kind.COUNTER, unit, (QUEUE_LABEL, *labels), text, keys, Method.TOTAL, read)


def stateset(name: str, text: str, read: Read, *, keys: tuple[str, ...]) -> Figure[Telemetry]:
    """Declare a set of states; OpenMetrics names the label as the metric."""
    return Figure(name, Kind.STATESET, "0 or 1", (QUEUE_LABEL, name), text, keys, Method.STORED, read)
