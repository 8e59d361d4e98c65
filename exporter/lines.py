"""Write figures as the lines of a page, for every scrape anew, keeping what stays the same between scrapes.

Everything before a value, name and labels, is made once for each combination of label values; what is kept is bounded,
and given up as a whole when classes come and go for long enough. A figure whose samples are those of the scrape before
is written as before. Use one object in one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from prometheus_client import utils

from exporter.figure import Figure, Sample, Source

# Many times what one queue has.
_MOST_KEPT = 5_000
# Go writes an exponent from here on, so prometheus-client does.
_PLAIN_BELOW = 1e6
# Untyped.
_go_number: Callable[[float], str] = utils.floatToGoString


class Lines(Generic[Source]):
    """Write the samples of some figures under the same values of the labels that all of them begin with."""

    def __init__(self, figures: Sequence[Figure[Source]], shared: tuple[str, ...]) -> None:
        self._shared = shared
        self._kept = [_Kept(figure) for figure in figures]
        self._made = 0

    def write(self, source: Source) -> tuple[bytes, ...]:
        """Give the lines of each figure as one text, in the order of the figures; a value that is no number has none.

        Raises ValueError when a figure's samples don't fit its labels.
        """
        if self._made > _MOST_KEPT:
            self._made = 0
            for kept in self._kept:
                kept.starts.clear()
        return tuple([self._of(kept, source) for kept in self._kept])

    def _of(self, kept: _Kept[Source], source: Source) -> bytes:
        samples = tuple(kept.figure.read(source))
        if samples != kept.samples:
            kept.text, kept.samples = self._text(kept, samples), samples
        return kept.text

    def _text(self, kept: _Kept[Source], samples: Iterable[Sample]) -> bytes:
        lines, starts = [], kept.starts
        for values, value in samples:
            if value is not None and math.isfinite(value):
                start = starts.get(values)
                if start is None:
                    labels = dict(zip(kept.figure.labels, (*self._shared, *values), strict=True))
                    start = starts[values] = start_of(kept.figure.sample_name, labels)
                    self._made += 1
                lines.append(f"{start}{number_of(value)}\n")
        return "".join(lines).encode()


@dataclass(slots=True)
class _Kept(Generic[Source]):
    """Keep of one figure how its lines begin, and its samples and their text of the scrape before."""

    figure: Figure[Source]
    starts: dict[tuple[str, ...], str] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    text: bytes = b""


def start_of(name: str, labels: dict[str, str]) -> str:
    """Give a sample's line up to its value, its labels in the order of their names."""
    inside = ",".join(f'{label}="{escaped(value)}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}} " if inside else f"{name} "


def number_of(value: float) -> str:
    """Give a value as prometheus-client writes it."""
    return repr(float(value)) if -_PLAIN_BELOW < value < _PLAIN_BELOW else _go_number(value)


def escaped(text: str) -> str:
    """Give a label's value, or a help text of OpenMetrics, as it stands between quotes."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
