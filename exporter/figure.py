"""Declare one exported metric as one record, and turn records plus what was read into metric families. Pure.

The record is the only place where a metric's name, type, unit, labels, help, source keys and method are said: the page
and the reference both come from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Generic, TypeVar

from prometheus_client.metrics_core import Metric

Source = TypeVar("Source")

# One sample: the values of the labels the figure names itself, and the value; None says "no sample".
Sample = tuple[tuple[str, ...], float | None]

# Units that Prometheus knows as base units: declared to the scraper where the name ends in them.
_DECLARED_UNITS = frozenset({"seconds", "ratio"})


class Kind(StrEnum):
    """Name the metric types in use, as OpenMetrics spells them."""

    GAUGE = "gauge"
    GAUGE_HISTOGRAM = "gaugehistogram"
    COUNTER = "counter"
    STATESET = "stateset"
    INFO = "info"


class Method(StrEnum):
    """Name how a figure comes about, in the words of the reference."""

    RANK = "exact, by rank on the sorted sets (nearest rank)"
    COUNT = "exact, counted on the sorted sets"
    WINDOW = "summed over the buckets of the window"
    DERIVED = "computed from other figures of the same reading"
    TOTAL = "a total kept in Redis, moved by a change of state that happens once"
    STORED = "as stored"
    CLOCK = "Redis TIME, read with the figures"
    OWN = "known to the exporter itself"


_SUFFIX = {Kind.COUNTER: "_total", Kind.INFO: "_info"}
_SAMPLE_SUFFIX = {Kind.GAUGE_HISTOGRAM: "_bucket"}


@dataclass(frozen=True, slots=True)
class Figure(Generic[Source]):
    """Declare one metric: `read` gives its samples, `labels` names all labels, the shared first ones included.

    A name carries its suffix (`_total`, `_info`), but for the `_bucket` of a gauge histogram. `unit` is for people;
    `keys` says where in Redis the figure is from.
    """

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str
    keys: tuple[str, ...]
    method: Method
    read: Callable[[Source], Iterable[Sample]]

    @property
    def family_name(self) -> str:
        """Give the name as TYPE and HELP lines say it in OpenMetrics: without the suffix of its kind."""
        return self.name.removesuffix(_SUFFIX.get(self.kind, ""))

    @property
    def sample_name(self) -> str:
        """Give the name of its samples."""
        return self.name + _SAMPLE_SUFFIX.get(self.kind, "")


def single(value: Callable[[Source], float | None]) -> Callable[[Source], Iterable[Sample]]:
    """Read one value without labels of its own."""
    return lambda source: [((), value(source))]


@lru_cache(maxsize=256)
def one_of(values: type[StrEnum], chosen: str | None) -> tuple[Sample, ...]:
    """Give a 0/1 sample for every value; none is 1 when the chosen one is not among them."""
    return tuple(((str(value),), float(value == chosen)) for value in values)


def family(figure: Figure[Source], sources: Iterable[tuple[tuple[str, ...], Source]]) -> Metric:
    """Build one fresh family from (values of the shared labels, source) pairs; a value that is no number is left out.

    Raises ValueError when the samples don't fit the declared labels.
    """
    name = figure.family_name
    declared = figure.unit if figure.unit in _DECLARED_UNITS and name.endswith(f"_{figure.unit}") else ""
    built = Metric(name, figure.help, figure.kind.value, declared)
    for shared, source in sources:
        for values, value in figure.read(source):
            if value is not None and math.isfinite(value):
                labels = dict(zip(figure.labels, (*shared, *values), strict=True))
                built.add_sample(figure.sample_name, labels, float(value))
    return built
