"""Draw one panel with its data as SVG: its curves or states, its thresholds with their values, its legend. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dashboards.model import Colour, Kind, Panel, Unit
from dashboards.plotted import Plotted
from sluicegate.svg import (
    ALARM,
    FAINT,
    Bound,
    Box,
    Line,
    Scale,
    Span,
    bound_lines,
    colour_of,
    curves,
    grid,
    stretches,
    svg_open,
    svg_text,
    text_width,
    time_axis,
)

_LEGEND_LINE, _SWATCH, _BESIDE = 16, 14, 22
_AXIS = 22
_LOWEST_ROW, _HIGHEST_ROW = 16.0, 60.0
_HEX = {
    Colour.GOOD: "#2da44e",
    Colour.NOTICE: "#bf8700",
    Colour.WARN: "#d1570b",
    Colour.BAD: ALARM,
    Colour.GREY: "#8c959f",
    Colour.UNDER_WAY: "#218bff",
}
# As many as there are lines on the fullest panel, told apart as well as so many can be.
_LINES = (
    "#0b5cad", "#c2410c", "#6b3fa0", "#0f766e", "#a16207", "#be185d", "#4d7c0f", "#1e3a8a", "#7c2d12", "#0891b2",
    "#9f1239", "#57534e", "#7e22ce", "#15803d", "#b45309", "#334155",
)  # fmt: skip


def spell(value: float, unit: Unit) -> str:
    """Write a value in its unit, as short as it can be read."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    match unit:
        case Unit.SECONDS:
            return f"{value:.3g} s" if abs(value) < 1000 else f"{value:.0f} s"
        case Unit.RATIO:
            return f"{100 * value:.3g} %"
        case Unit.YES_NO:
            return "yes" if value else "no"
        case Unit.COUNT:
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def draw_panel(panel: Panel, plotted: Plotted, width: int, height: int) -> str:
    """Draw a panel without its title; one without any value says why."""
    lines = plotted.lines[panel.id]
    parts = [svg_open(width, height, panel.title)]
    if not any(value is not None for line in lines for _, value in line.points):
        parts.append(svg_text(width / 2, height / 2, panel.no_value, fill=FAINT, anchor="middle"))
    elif panel.kind is Kind.STAT:
        parts += _number(panel, lines, width, height)
    elif panel.kind is Kind.STATES:
        parts += _states(panel, lines, plotted.seconds, width, height)
    else:
        parts += _curves(panel, lines, plotted, width, height)
    return "\n".join([*parts, "</svg>"])


def _number(panel: Panel, lines: Sequence[Line], width: int, height: int) -> list[str]:
    """Show the number on the colour of its step."""
    value = next(value for line in lines for _, value in line.points if value is not None)
    fill = _HEX[next(step.colour for step in reversed(panel.steps) if step.value is None or value >= step.value)]
    text = spell(value, panel.unit)
    return [
        f"<rect x='6' y='2' width='{width - 12}' height='{height - 8}' rx='4' fill='{fill}'/>",
        svg_text(width / 2, height / 2 + 8, text, size=26, fill="#ffffff", anchor="middle", weight="600"),
    ]


def _states(panel: Panel, lines: Sequence[Line], seconds: float, width: int, height: int) -> list[str]:
    """Draw a row a state, and in it when it was; where there is no room for all, those that never were go."""
    room = height - _AXIS - 2
    shown = list(lines)
    if room / len(shown) < _LOWEST_ROW:
        shown = [line for line in lines if any(value for _, value in line.points)] or shown[:1]
    left = 14 + max(text_width(line.label) for line in shown)
    row = min(_HIGHEST_ROW, room / len(shown))
    usual, own = panel.steps[-1].colour, dict(panel.colours)
    parts: list[str] = []
    for number, line in enumerate(shown):
        box = Box(left, 2 + number * row, width - left - _BESIDE, row - 3, seconds)
        middle = box.top + box.height / 2 + 4
        parts += [
            f"<rect x='{left:g}' y='{box.top:.1f}' width='{box.width:g}' height='{box.height:.1f}' fill='#eef1f4'/>",
            svg_text(left - 6, middle, line.label, fill=FAINT, anchor="end"),
            *stretches(box, tuple(_when(line, _HEX[own.get(line.label, usual)]))),
        ]
    return [*parts, *time_axis(Box(left, 0, width - left - _BESIDE, room, seconds), 2 + len(shown) * row + 14)]


def _when(line: Line, colour: str) -> Iterator[Span]:
    """Give the stretches in which a state was."""
    begun: float | None = None
    for at_s, value in (*line.points, (line.points[-1][0], None)):
        if value and begun is None:
            begun = at_s
        elif not value and begun is not None:
            yield Span("", begun, at_s, colour)
            begun = None


def _curves(panel: Panel, lines: Sequence[Line], plotted: Plotted, width: int, height: int) -> list[str]:
    """Draw the curves and the thresholds over the closed gate and the beginnings of alerts, and the legend below."""
    coloured = list(zip(lines, _LINES * (1 + len(lines) // len(_LINES)), strict=False))
    legend, rows = _legend(coloured, width, height)
    bounds = [
        Bound(spell(step.value, panel.unit), step.value, _HEX[step.colour])
        for step in panel.steps
        if step.value is not None
    ]
    highest = max((bound.value for bound in bounds), default=0.0) * 1.15
    least = max(highest, 0.01 if panel.unit is Unit.RATIO else 1.0)
    scale = Scale.of(lines, least, math.inf if panel.at_most is None else panel.at_most)
    said = [spell(value, panel.unit) for value in (scale.low, (scale.low + scale.high) / 2, scale.high)]
    left = 12 + max(map(text_width, said))
    right = _BESIDE + max((text_width(bound.label) for bound in bounds), default=0.0)
    box = Box(left, 8, width - left - right, height - 8 - _AXIS - rows * _LEGEND_LINE, plotted.seconds)
    return [
        *(_band(box, span) for span in plotted.closings),
        *(_mark(box, span) for span in plotted.alerts),
        *grid(box, scale, lambda value: spell(value, panel.unit)),
        *bound_lines(box, scale, bounds),
        *curves(box, scale, coloured),
        *time_axis(box, box.bottom + 16),
        *legend,
    ]


def _band(box: Box, span: Span) -> str:
    left, right = box.x(span.from_s), box.x(span.to_s)
    return (
        f"<rect x='{left:.1f}' y='{box.top:g}' width='{max(0.5, right - left):.1f}' height='{box.height:g}' "
        f"fill='{colour_of(span)}' opacity='0.1'/>"
    )


def _mark(box: Box, span: Span) -> str:
    x = box.x(span.from_s)
    return f"<line x1='{x:.1f}' y1='{box.top:g}' x2='{x:.1f}' y2='{box.bottom:g}' stroke='{ALARM}' opacity='0.35'/>"


def _legend(coloured: Sequence[tuple[Line, str]], width: int, height: int) -> tuple[list[str], int]:
    """Write the names of the curves at the bottom, in so few rows that the curves keep half; give the rows too."""
    most = max(1, int(height / 2 - _AXIS) // _LEGEND_LINE)
    places: list[tuple[float, int, Line, str]] = []
    x, row = 10.0, 0
    for line, colour in coloured:
        needed = _SWATCH + text_width(line.label) + 12
        if x > 10 and x + needed > width - 6:
            x, row = 10.0, row + 1
        places.append((x, row, line, colour))
        x += needed
    rows = min(row + 1, most)
    parts = []
    for left, number, line, colour in places:
        if number >= rows:
            break
        y = height - (rows - number) * _LEGEND_LINE + 8
        parts.append(f"<rect x='{left:.1f}' y='{y - 5:g}' width='10' height='3' fill='{colour}'/>")
        parts.append(svg_text(left + _SWATCH, y, line.label, fill=FAINT))
    return parts, rows
