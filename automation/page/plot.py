"""Lay a figure's samples out as a small plot: lines with gaps, and the bounds it is compared with. Pure geometry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from automation.page.samples import Sample

WIDTH, HEIGHT = 240, 48
_EDGE = 3
# A service that has just started fills its plots all the same.
_SHORTEST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Line:
    """Hold a bound's height, and what it stands for."""

    y: str
    kind: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Hold the points of each unbroken line as SVG takes them, the bounds, and what a reader hears instead."""

    lines: tuple[str, ...]
    bounds: tuple[Line, ...]
    said: str


@dataclass(frozen=True, slots=True)
class Band:
    """Hold one stretch of a state: from `x`, so wide."""

    x: str
    width: str
    state: str


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    end_ms: int
    span_ms: float

    def x(self, at_ms: int) -> float:
        return max(0.0, WIDTH * (1 - (self.end_ms - at_ms) / self.span_ms))

    def y(self, value: float) -> float:
        return HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * (value - self.low) / (self.high - self.low)


def plot(samples: Sequence[Sample], name: str, span_s: float, bounds: Iterable[tuple[float, str]], said: str) -> Plot:
    """Plot the figure `name` over the last `span_s`; `bounds` are values and what each is for."""
    drawn = list(bounds)
    values = [value for sample in samples if (value := sample.values.get(name)) is not None]
    if not values:
        return Plot((), (), f"{said}: no sample")
    low = min(0.0, *values)
    high = max(*values, *(bound for bound, _ in drawn), low + 1e-9) if drawn else max(*values, low + 1e-9)
    scale = _Scale(low, high, samples[-1].at_ms, _span_ms(samples, span_s))
    return Plot(
        tuple(_lines(samples, name, scale)),
        tuple(Line(f"{scale.y(bound):.1f}", kind) for bound, kind in drawn),
        f"{said}: lowest {min(values):.3g}, highest {max(values):.3g}",
    )


def _lines(samples: Sequence[Sample], name: str, scale: _Scale) -> Iterable[str]:
    open_line: list[str] = []
    for sample in samples:
        value = sample.values.get(name)
        if value is not None:
            open_line.append(f"{scale.x(sample.at_ms):.1f},{scale.y(value):.1f}")
        elif open_line:
            yield _drawn(open_line)
            open_line = []
    if open_line:
        yield _drawn(open_line)


def _drawn(points: list[str]) -> str:
    """Give a line's points; a single one is drawn as a dot, a line of no length."""
    return " ".join(points if len(points) > 1 else points * 2)


def _span_ms(samples: Sequence[Sample], span_s: float) -> float:
    """Give the time that a plot's width stands for: that of its samples, as far as the page looks back."""
    return min(1000 * span_s, max(_SHORTEST_MS, samples[-1].at_ms - samples[0].at_ms))


def bands(samples: Sequence[Sample], span_s: float) -> tuple[Band, ...]:
    """Lay the gate's states out over the last `span_s`; where nothing was read there is nothing."""
    if not samples:
        return ()
    scale = _Scale(0, 1, samples[-1].at_ms, _span_ms(samples, span_s))
    found: list[Band] = []
    starts = [
        place for place, one in enumerate(samples) if place == 0 or samples[place - 1].drain_state != one.drain_state
    ]
    for start, end in zip(starts, [*starts[1:], len(samples) - 1], strict=True):
        x = scale.x(samples[start].at_ms)
        width = max(scale.x(samples[end].at_ms) - x, 1.0)
        if samples[start].drain_state:
            found.append(Band(f"{min(x, WIDTH - 1):.1f}", f"{width:.1f}", samples[start].drain_state))
    return tuple(found)
