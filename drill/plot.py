"""Draw a drill as one SVG picture: the gate's states over time, and the figures below them. Pure.

Own code instead of a plotting library: the picture must stand in a page without network, and be small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 960
# Right of the diagrams stand the names of their thresholds.
_LEFT, _RIGHT, _TOP = 58, 106, 26
_LABEL_HEIGHT = 11
_PANEL_HEIGHT, _PANEL_GAP, _STRIP_HEIGHT = 92, 34, 20
_FONT = "font-family='system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif'"
_INK, _FAINT, _GRID = "#1f2328", "#59636e", "#d8dee4"
# Told apart in the usual kinds of colour blindness, and by the labels beside them.
COLOURS = ("#0b5cad", "#c2410c", "#6b3fa0", "#0f766e", "#a16207", "#be185d")
STATE_COLOURS = {"admit": "#2da44e", "reject_new": "#d4a72c", "recovering": "#218bff", "drain": "#cf222e"}


@dataclass(frozen=True, slots=True)
class Span:
    """Hold a labelled stretch of time, in seconds from the picture's left edge."""

    label: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """Hold a labelled instant."""

    label: str
    at_s: float


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


@dataclass(frozen=True, slots=True)
class Panel:
    """Hold one diagram; its scale starts at 0 unless a value lies below, and reaches at least `at_least`.

    What lies above `at_most` is drawn at the upper edge.
    """

    title: str
    lines: tuple[Line, ...]
    bounds: tuple[Bound, ...] = ()
    at_least: float = 1.0
    at_most: float = math.inf


@dataclass(frozen=True, slots=True)
class Picture:
    """Hold the whole picture; `states` are the gate's."""

    title: str
    seconds: float
    states: tuple[Span, ...]
    phases: tuple[Span, ...]
    moments: tuple[Moment, ...]
    panels: tuple[Panel, ...]


def draw(picture: Picture) -> str:
    """Return the picture as one SVG element."""
    first_panel = _TOP + 2 * (_STRIP_HEIGHT + 6) + 44
    bottom = first_panel + len(picture.panels) * (_PANEL_HEIGHT + _PANEL_GAP)
    height = bottom + 16 * len(picture.moments) + 4
    opening = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' "
        f"role='img' aria-label='{escape(picture.title, quote=True)}' {_FONT} font-size='11'>"
    )
    parts = [
        opening,
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
        svg_text(_LEFT, 17, picture.title, size=13, weight="600"),
    ]
    parts += _key(WIDTH - _RIGHT, 17)
    parts += _strip(picture, picture.states, _TOP, coloured=True)
    parts += _strip(picture, picture.phases, _TOP + _STRIP_HEIGHT + 6, coloured=False)
    parts += _bands(picture, first_panel, bottom - _PANEL_GAP)
    for number, panel in enumerate(picture.panels):
        parts += _panel(picture, panel, first_panel + number * (_PANEL_HEIGHT + _PANEL_GAP))
    parts += _moments(picture, _TOP + 2 * _STRIP_HEIGHT + 6, bottom - _PANEL_GAP)
    parts += _time_axis(picture, bottom - _PANEL_GAP + 14)
    for number, moment in enumerate(picture.moments, start=1):
        y = bottom + 16 * number - 14
        parts += [_badge(_LEFT + 7, y, number), svg_text(_LEFT + 20, y + 4, f"{moment.at_s:.1f} s  {moment.label}")]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(picture: Picture, at_s: float) -> float:
    share = min(1.0, max(0.0, at_s / picture.seconds)) if picture.seconds > 0 else 0.0
    return _LEFT + share * (WIDTH - _LEFT - _RIGHT)


def svg_text(
    x: float, y: float, text: str, *, size: int = 11, fill: str = _INK, anchor: str = "start", weight: str = "400"
) -> str:
    """Write a text at a place of a picture, in its units."""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' font-weight='{weight}' fill='{fill}' "
        f"text-anchor='{anchor}'>{escape(text)}</text>"
    )


def _colour(state: str) -> str:
    """Give a state's colour; what follows its name, such as a ramp's share, makes no difference."""
    return STATE_COLOURS.get(state.partition(" ")[0], "#8c959f")


def _key(right: float, y: float) -> list[str]:
    """Write the gate's states in their colours, loosest first: a short stretch has no room for its name."""
    parts: list[str] = []
    for state, colour in reversed(STATE_COLOURS.items()):
        right -= 6.2 * len(state)
        parts.append(svg_text(right, y, state, fill=_FAINT))
        right -= 14
        parts.append(f"<rect x='{right:.1f}' y='{y - 9}' width='10' height='10' rx='2' fill='{colour}'/>")
        right -= 12
    return parts


def _strip(picture: Picture, spans: Iterable[Span], y: float, *, coloured: bool) -> list[str]:
    parts = [svg_text(_LEFT - 6, y + 14, "gate" if coloured else "phase", fill=_FAINT, anchor="end")]
    for span in spans:
        left, right = _x(picture, span.from_s), _x(picture, span.to_s)
        fill = _colour(span.label) if coloured else "#eef1f4"
        title = f"<title>{escape(span.label)}: {span.to_s - span.from_s:.1f} s</title>"
        parts.append(
            f"<g>{title}<rect x='{left:.1f}' y='{y}' width='{max(0.5, right - left - 1):.1f}' height='{_STRIP_HEIGHT}' "
            f"rx='2' fill='{fill}'/>"
        )
        # About six pixels a letter; what does not fit is in the title.
        if right - left > 5.8 * len(span.label) + 6:
            ink = "#ffffff" if coloured else _INK
            parts.append(svg_text((left + right) / 2, y + 14, span.label, fill=ink, anchor="middle"))
        parts.append("</g>")
    return parts


def _bands(picture: Picture, top: float, bottom: float) -> list[str]:
    return [
        f"<rect x='{_x(picture, span.from_s):.1f}' y='{top}' "
        f"width='{max(0.0, _x(picture, span.to_s) - _x(picture, span.from_s)):.1f}' height='{bottom - top}' "
        f"fill='{_colour(span.label)}' opacity='0.07'/>"
        for span in picture.states
    ]


def _moments(picture: Picture, top: float, bottom: float) -> list[str]:
    parts = []
    for number, moment in enumerate(picture.moments, start=1):
        x = _x(picture, moment.at_s)
        parts.append(
            f"<g><title>{escape(moment.label)}, at {moment.at_s:.1f} s</title>"
            f"<line x1='{x:.1f}' y1='{top + 16}' x2='{x:.1f}' y2='{bottom}' stroke='{_FAINT}' stroke-dasharray='2 3'/>"
            f"{_badge(x, top + 14, number)}</g>"
        )
    return parts


def _badge(x: float, y: float, number: int) -> str:
    label = svg_text(x, y + 3.5, str(number), size=9, fill="#ffffff", anchor="middle")
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='7' fill='{_INK}'/>{label}"


def _scale(panel: Panel) -> tuple[float, float]:
    values = [value for line in panel.lines for _, value in line.points if value is not None]
    low = min([0.0, *values])
    return low, _round_up(min(panel.at_most, max([panel.at_least, *values])))


def _round_up(value: float) -> float:
    """Give the next 1, 2 or 5 × a power of ten, so that half the scale is a short number as well."""
    power = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.001
    while power < value / 10:
        power *= 10
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 100) if step * power >= value)


def _panel(picture: Picture, panel: Panel, top: float) -> list[str]:
    low, high = _scale(panel)

    def y(value: float) -> float:
        return top + _PANEL_HEIGHT * (1 - (min(value, high) - low) / (high - low))

    parts = [svg_text(_LEFT, top - 8, panel.title, weight="600"), *_legend(panel, top - 8)]
    for value in sorted({low, 0.0, (low + high) / 2, high}):
        parts.append(
            f"<line x1='{_LEFT}' y1='{y(value):.1f}' x2='{WIDTH - _RIGHT}' y2='{y(value):.1f}' stroke='{_GRID}'/>"
        )
        parts.append(svg_text(_LEFT - 6, y(value) + 4, f"{value:g}", fill=_FAINT, anchor="end"))
    label_y = math.inf
    for bound in sorted(panel.bounds, key=lambda bound: bound.value):
        if low <= bound.value <= high:
            parts.append(
                f"<line x1='{_LEFT}' y1='{y(bound.value):.1f}' x2='{WIDTH - _RIGHT}' y2='{y(bound.value):.1f}' "
                f"stroke='{STATE_COLOURS['drain']}' stroke-dasharray='5 4' opacity='0.8'/>"
            )
            # Outside the diagram, level with its line; from the lowest up, each keeps clear of the one below it.
            label_y = min(y(bound.value) + 3, label_y - _LABEL_HEIGHT)
            parts.append(svg_text(WIDTH - _RIGHT + 6, label_y, bound.label, size=9, fill=_FAINT))
    for line, colour in zip(panel.lines, COLOURS, strict=False):
        for piece in _pieces(line.points):
            points = " ".join(f"{_x(picture, at_s):.1f},{y(value):.1f}" for at_s, value in piece)
            parts.append(f"<polyline fill='none' stroke='{colour}' stroke-width='1.6' points='{points}'/>")
    return parts


def _legend(panel: Panel, y: float) -> list[str]:
    """Write the names of the curves at the right, in their colours; a single one is named by the title."""
    if len(panel.lines) < 2:
        return []
    parts: list[str] = []
    x = float(WIDTH - _RIGHT)
    for line, colour in reversed(list(zip(panel.lines, COLOURS, strict=False))):
        parts.append(svg_text(x, y, line.label, fill=colour, anchor="end", weight="600"))
        x -= 6.8 * len(line.label) + 14
    return parts


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Cut a curve at its gaps, and leave out the points inside a level stretch."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at_s, value in points:
        if value is None:
            pieces.append([])
            continue
        piece = pieces[-1]
        if len(piece) >= 2 and piece[-1][1] == value == piece[-2][1]:
            piece[-1] = (at_s, value)
        else:
            piece.append((at_s, value))
    return [piece for piece in pieces if piece]


def _time_axis(picture: Picture, y: float) -> list[str]:
    step = next((step for step in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if picture.seconds / step <= 12), 1200)
    ticks = range(0, int(picture.seconds) + 1, step)
    return [svg_text(_x(picture, tick), y, f"{tick} s", fill=_FAINT, anchor="middle") for tick in ticks]
