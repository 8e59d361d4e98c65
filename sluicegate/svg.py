"""Which pieces is every picture of this project made of: boxes with a time axis, curves, bounds, stretches? Pure.

Own code instead of a plotting library: a picture must stand in a page without network, and be small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

FONT = "font-family='system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif'"
INK, FAINT, GRID, ALARM = "#1f2328", "#59636e", "#d8dee4", "#cf222e"
# Told apart in the usual kinds of colour blindness, and by the labels beside them.
COLOURS = ("#0b5cad", "#c2410c", "#6b3fa0", "#0f766e", "#a16207", "#be185d")
STATE_COLOURS = {"admit": "#2da44e", "reject_new": "#d4a72c", "recovering": "#218bff", "drain": ALARM}
_LABEL_HEIGHT = 11
# About so many pixels a letter of the usual size is wide.
_LETTER = 6.2
_STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)
_MOST_TICKS = 12
# Name and seconds of a unit, and the least step that is told in it.
_UNITS = (("d", 86_400, 86_400), ("h", 3600, 3600), ("min", 60, 300), ("s", 1, 0))


@dataclass(frozen=True, slots=True)
class Span:
    """Hold a labelled stretch of time, in seconds from the left edge; without a colour its label gives one."""

    label: str
    from_s: float
    to_s: float
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Hold one curve; None is a gap."""

    label: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """Hold a threshold."""

    label: str
    value: float
    colour: str = ALARM


@dataclass(frozen=True, slots=True)
class Box:
    """Hold a place of a picture, in its units, and the seconds that its width stands for."""

    left: float
    top: float
    width: float
    height: float
    seconds: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, at_s: float) -> float:
        """Give the place of an instant; what lies outside is at the edge."""
        share = min(1.0, max(0.0, at_s / self.seconds)) if self.seconds > 0 else 0.0
        return self.left + share * self.width


@dataclass(frozen=True, slots=True)
class Scale:
    """Hold the values at the lower and the upper edge of a box; what lies above is drawn at the edge."""

    low: float
    high: float

    @classmethod
    def of(cls, lines: Iterable[Line], at_least: float, at_most: float = math.inf) -> Scale:
        """Start at 0 unless a value lies below, and reach at least `at_least`, at most `at_most`."""
        values = [value for line in lines for _, value in line.points if value is not None and math.isfinite(value)]
        return cls(min([0.0, *values]), round_up(min(at_most, max([at_least, *values]))))

    def y(self, box: Box, value: float) -> float:
        share = (max(self.low, min(value, self.high)) - self.low) / (self.high - self.low)
        return box.top + box.height * (1 - share)


def svg_open(width: float, height: float, title: str) -> str:
    """Open a picture of its own; `title` is what is read out instead of it."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' width='{width:g}' "
        f"height='{height:g}' role='img' aria-label='{escape(title, quote=True)}' {FONT} font-size='11'>"
        f"<rect width='{width:g}' height='{height:g}' fill='#ffffff'/>"
    )


def svg_text(
    x: float, y: float, text: str, *, size: int = 11, fill: str = INK, anchor: str = "start", weight: str = "400"
) -> str:
    """Write a text at a place of a picture, in its units."""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' font-weight='{weight}' fill='{fill}' "
        f"text-anchor='{anchor}'>{escape(text)}</text>"
    )


def colour_of(span: Span) -> str:
    """Give a stretch's colour: its own, or its state's; what follows a state's name, as a ramp's share, is nothing."""
    return span.colour or STATE_COLOURS.get(span.label.partition(" ")[0], "#8c959f")


def stretches(box: Box, spans: Iterable[Span], *, ink: str = "#ffffff") -> list[str]:
    """Draw stretches of time in a row, each with its name where there is room for it."""
    parts: list[str] = []
    for span in spans:
        left, right = box.x(span.from_s), box.x(span.to_s)
        title = f"<title>{escape(span.label)}: {span.to_s - span.from_s:.1f} s</title>"
        parts.append(
            f"<g>{title}<rect x='{left:.1f}' y='{box.top:g}' width='{max(0.5, right - left - 1):.1f}' "
            f"height='{box.height:g}' rx='2' fill='{colour_of(span)}'/>"
        )
        # What does not fit is in the title.
        if right - left > 5.8 * len(span.label) + 6:
            middle = box.top + box.height / 2 + 4
            parts.append(svg_text((left + right) / 2, middle, span.label, fill=ink, anchor="middle"))
        parts.append("</g>")
    return parts


def grid(box: Box, scale: Scale, spell: Callable[[float], str] = "{:g}".format) -> list[str]:
    """Draw lines at the bottom, the zero, the middle and the top, with their values at the left."""
    parts = []
    for value in sorted({scale.low, 0.0, (scale.low + scale.high) / 2, scale.high}):
        y = scale.y(box, value)
        parts.append(f"<line x1='{box.left:g}' y1='{y:.1f}' x2='{box.right:g}' y2='{y:.1f}' stroke='{GRID}'/>")
        parts.append(svg_text(box.left - 6, y + 4, spell(value), fill=FAINT, anchor="end"))
    return parts


def bound_lines(box: Box, scale: Scale, bounds: Iterable[Bound]) -> list[str]:
    """Draw thresholds; their names stand right of the box, level with their lines, clear of each other."""
    parts = []
    label_y = math.inf
    for bound in sorted(bounds, key=lambda bound: bound.value):
        if scale.low <= bound.value <= scale.high:
            y = scale.y(box, bound.value)
            parts.append(
                f"<line x1='{box.left:g}' y1='{y:.1f}' x2='{box.right:g}' y2='{y:.1f}' "
                f"stroke='{bound.colour}' stroke-dasharray='5 4' opacity='0.8'/>"
            )
            # From the lowest up, each keeps clear of the one below it.
            label_y = min(y + 3, label_y - _LABEL_HEIGHT)
            parts.append(svg_text(box.right + 6, label_y, bound.label, size=9, fill=FAINT))
    return parts


def curves(box: Box, scale: Scale, lines: Iterable[tuple[Line, str]]) -> list[str]:
    """Draw curves in their colours; a gap cuts them."""
    parts = []
    for line, colour in lines:
        for piece in _pieces(line.points):
            points = " ".join(f"{box.x(at_s):.1f},{scale.y(box, value):.1f}" for at_s, value in piece)
            parts.append(f"<polyline fill='none' stroke='{colour}' stroke-width='1.6' points='{points}'/>")
    return parts


def time_axis(box: Box, y: float) -> list[str]:
    """Write the time since the left edge under a box, in the largest unit that gives whole numbers."""
    most = min(_MOST_TICKS, max(1, int(box.width // 60)))
    step = next((step for step in _STEPS_S if box.seconds / step <= most), _STEPS_S[-1])
    name, unit = next(((name, unit) for name, unit, from_s in _UNITS if step >= from_s))
    ticks = range(0, int(box.seconds) + 1, step)
    return [svg_text(box.x(tick), y, f"{tick // unit} {name}", fill=FAINT, anchor="middle") for tick in ticks]


def text_width(text: str) -> float:
    """Tell about how wide a text of the usual size is."""
    return _LETTER * len(text)


def round_up(value: float) -> float:
    """Give the next 1, 2 or 5 × a power of ten, so that half the scale is a short number as well."""
    power = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.001
    while power < value / 10:
        power *= 10
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 100) if step * power >= value)


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Cut a curve at its gaps, and leave out the points inside a level stretch."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at_s, value in points:
        if value is None or not math.isfinite(value):
            pieces.append([])
            continue
        piece = pieces[-1]
        if len(piece) >= 2 and piece[-1][1] == value == piece[-2][1]:
            piece[-1] = (at_s, value)
        else:
            piece.append((at_s, value))
    return [piece for piece in pieces if piece]
