"""Write a page as prometheus-client would, byte for byte, in a fraction of its time.

The queues' lines come with their readings (see lines.py); the heads of the families and this process's own figures are
added here. What is kept between scrapes is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as PrometheusCollector
from prometheus_client.samples import Sample

from exporter.catalogue import BUILD, PAGE, READING
from exporter.families import own_families, page, queue_families
from exporter.lines import Lines, escaped, number_of, start_of
from exporter.reading import Reading, Scrape
from sluicegate import __version__

# Figures of queues and classes are kept with their queues; here are those of this process.
_MOST_KEPT = 1_000
# What the text format has no type for comes last, as gauges of their own.
_APART = ("_created", "_gsum", "_gcount")
_TEXT_TYPES = {"info": "gauge", "stateset": "gauge", "gaugehistogram": "histogram", "unknown": "untyped"}
_TEXT_SUFFIXES = {"counter": "_total", "info": "_info"}


class Renderer:
    """Render scrapes with the figures of this process; use it in one thread."""

    def __init__(self, process: CollectorRegistry) -> None:
        self._process = process
        self._starts: dict[tuple[object, ...], str] = {}
        # Of each family and format: what prometheus-client gave last, and its text.
        self._wholes: dict[tuple[str, bool], tuple[tuple[object, ...], bytes]] = {}
        self._readings: dict[str, Lines[Reading]] = {}
        self._page: Lines[Scrape] = Lines(PAGE, ())
        self._build = Lines(BUILD, ()).write(__version__)
        self._queue_heads = _heads(queue_families([]))
        self._own_heads = _heads(own_families(Scrape((), 0.0)))

    def render(self, scrape: Scrape, accept: str) -> tuple[bytes, str]:
        """Give the page in the format that was asked for, text or OpenMetrics, and its content type."""
        encode, content_type = _negotiated(accept)
        if "escaping=dots" in content_type or "escaping=values" in content_type:
            # Nobody's default, and they change names.
            return encode(_Families([*page(scrape), *self._process.collect()])), content_type
        open_metrics = content_type.startswith("application/openmetrics-text")
        parts: list[bytes] = []
        queues = [reading.lines for reading in scrape.readings if reading.lines]
        for number, head in enumerate(self._queue_heads[open_metrics]):
            parts.append(head)
            parts += [lines[number] for lines in queues]
        for head, text in zip(self._own_heads[open_metrics], self._own(scrape), strict=True):
            parts += (head, text)
        for one in self._process.collect():
            parts.append(self._whole(one, open_metrics=open_metrics))
        if open_metrics:
            parts.append(b"# EOF\n")
        return b"".join(parts), content_type

    def _own(self, scrape: Scrape) -> list[bytes]:
        """Give the lines of the exporter's own health, a text a family."""
        for reading in scrape.readings:
            if reading.queue not in self._readings:
                self._readings[reading.queue] = Lines(READING, (reading.queue,))
        queues = [self._readings[reading.queue].write(reading) for reading in scrape.readings]
        by_family = [b"".join(lines[number] for lines in queues) for number in range(len(READING))]
        return [*by_family, *self._page.write(scrape), *self._build]

    def _whole(self, one: Metric, *, open_metrics: bool) -> bytes:
        """Give head and lines of one family that prometheus-client made; where it is as before, so is its text."""
        key = (one.name, open_metrics)
        # Two zeros are equal, and are written with their signs.
        signs = [math.copysign(1.0, sample.value) for sample in one.samples if not sample.value]
        shows = (one.type, one.unit, one.documentation, *one.samples, *signs)
        known = self._wholes.get(key)
        if known is None or known[0] != shows:
            if len(self._wholes) > _MOST_KEPT:
                self._wholes.clear()
            known = self._wholes[key] = (shows, "".join(self._written(one, open_metrics=open_metrics)).encode())
        return known[1]

    def _written(self, one: Metric, *, open_metrics: bool) -> list[str]:
        if len(self._starts) > _MOST_KEPT:
            self._starts.clear()
        lines = [_open_metrics_head(one) if open_metrics else _family_head(one)]
        if open_metrics:
            return lines + [self._line(sample) for sample in one.samples]
        apart: dict[str, list[str]] = {}
        named = {one.name + suffix: suffix for suffix in _APART}
        for sample in one.samples:
            (apart.setdefault(named[sample.name], []) if sample.name in named else lines).append(self._line(sample))
        for suffix, last in sorted(apart.items()):
            lines.append(_text_head(one.name + suffix, "gauge", one.documentation))
            lines += last
        return lines

    def _line(self, sample: Sample) -> str:
        key = (sample.name, *sample.labels.items())
        start = self._starts.get(key)
        if start is None:
            start = self._starts[key] = start_of(sample.name, sample.labels)
        return f"{start}{number_of(sample.value)}\n"


class _Families(PrometheusCollector):
    """Hold the families of one scrape in the shape that prometheus-client's encoders ask for."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Give the families, once a scrape."""
        return self._families


@lru_cache(maxsize=64)
def _negotiated(accept: str) -> tuple[Callable[[PrometheusCollector], bytes], str]:
    """Give prometheus-client's encoder and the content type; scrapers ask with the same words every time."""
    return choose_encoder(accept)


def _heads(families: Sequence[Metric]) -> dict[bool, list[bytes]]:
    """Give the heads of families in both formats, those of OpenMetrics under True."""
    return {
        True: [_open_metrics_head(one).encode() for one in families],
        False: [_family_head(one).encode() for one in families],
    }


def _open_metrics_head(one: Metric) -> str:
    unit = f"# UNIT {one.name} {one.unit}\n" if one.unit else ""
    return f"# HELP {one.name} {escaped(one.documentation)}\n# TYPE {one.name} {one.type}\n{unit}"


def _family_head(one: Metric) -> str:
    return _text_head(
        one.name + _TEXT_SUFFIXES.get(one.type, ""), _TEXT_TYPES.get(one.type, one.type), one.documentation
    )


def _text_head(name: str, kind: str, documentation: str) -> str:
    says = documentation.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {says}\n# TYPE {name} {kind}\n"
