"""How is a course of events drawn as one SVG picture: strips of states over time, and figures below them? Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sluicegate.svg import (
    COLOURS,
    FAINT,
    INK,
    STATE_COLOURS,
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

WIDTH = 960
# Right of the diagrams stand the names of their thresholds.
_RIGHT, _TOP = 106, 26
_PANEL_HEIGHT, _PANEL_GAP, _STRIP_GAP = 92, 34, 6


@dataclass(frozen=True, slots=True)
class Moment:
    """Hold a labelled instant, in seconds from the picture's left edge."""

    label: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Strip:
    """Hold a row of stretches; those without a colour of their own are plain where the strip is."""

    label: str
    spans: tuple[Span, ...]
    is_plain: bool = False
    height: int = 20


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
    """Hold the whole picture. The first strip's stretches, the gate's states, shade the diagrams.

    `left` is the room for the strips' names; `legend` names colours beside the gate's.
    """

    title: str
    seconds: float
    strips: tuple[Strip, ...]
    moments: tuple[Moment, ...]
    panels: tuple[Panel, ...]
    left: int = 58
    legend: tuple[tuple[str, str], ...] = ()


def draw(picture: Picture) -> str:
    """Return the picture as one SVG element."""
    strips_height = sum(strip.height + _STRIP_GAP for strip in picture.strips)
    first_panel = _TOP + strips_height + 44
    bottom = first_panel + len(picture.panels) * (_PANEL_HEIGHT + _PANEL_GAP)
    height = bottom + 16 * len(picture.moments) + 4
    whole = _box(picture, _TOP, bottom - _PANEL_GAP - _TOP)
    parts = [svg_open(WIDTH, height, picture.title), svg_text(picture.left, 17, picture.title, size=13, weight="600")]
    parts += _key(whole.right, 17, tuple(STATE_COLOURS.items()))
    parts += _key(whole.right, _TOP + strips_height + 10, picture.legend)
    top = _TOP
    for strip in picture.strips:
        parts += _strip(_box(picture, top, strip.height), strip)
        top += strip.height + _STRIP_GAP
    parts += _bands(picture, first_panel, bottom - _PANEL_GAP)
    for number, panel in enumerate(picture.panels):
        parts += _panel(_box(picture, first_panel + number * (_PANEL_HEIGHT + _PANEL_GAP), _PANEL_HEIGHT), panel)
    parts += _moments(picture, _TOP + strips_height, bottom - _PANEL_GAP)
    parts += time_axis(whole, bottom - _PANEL_GAP + 14)
    for number, moment in enumerate(picture.moments, start=1):
        y = bottom + 16 * number - 14
        text = f"{moment.at_s:.1f} s  {moment.label}"
        parts += [_badge(picture.left + 7, y, number), svg_text(picture.left + 20, y + 4, text)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(picture: Picture, top: float, height: float) -> Box:
    return Box(picture.left, top, WIDTH - picture.left - _RIGHT, height, picture.seconds)


def _key(right: float, y: float, named: Sequence[tuple[str, str]]) -> list[str]:
    """Write names with their colours, the last one at the right: a short stretch has no room for its name."""
    parts: list[str] = []
    for name, colour in reversed(named):
        right -= text_width(name)
        parts.append(svg_text(right, y, name, fill=FAINT))
        right -= 14
        parts.append(f"<rect x='{right:.1f}' y='{y - 9}' width='10' height='10' rx='2' fill='{colour}'/>")
        right -= 12
    return parts


def _strip(box: Box, strip: Strip) -> list[str]:
    label = svg_text(box.left - 6, box.top + box.height / 2 + 4, strip.label, fill=FAINT, anchor="end")
    if not strip.is_plain:
        return [label, *stretches(box, strip.spans)]
    plain = tuple(Span(span.label, span.from_s, span.to_s, span.colour or "#eef1f4") for span in strip.spans)
    return [label, *stretches(box, plain, ink=INK)]


def _bands(picture: Picture, top: float, bottom: float) -> list[str]:
    box = _box(picture, top, bottom - top)
    return [
        f"<rect x='{box.x(span.from_s):.1f}' y='{top:g}' "
        f"width='{max(0.0, box.x(span.to_s) - box.x(span.from_s)):.1f}' height='{bottom - top:g}' "
        f"fill='{colour_of(span)}' opacity='0.07'/>"
        for strip in picture.strips[:1]
        for span in strip.spans
    ]


def _moments(picture: Picture, top: float, bottom: float) -> list[str]:
    parts = []
    for number, moment in enumerate(picture.moments, start=1):
        x = _box(picture, top, 0).x(moment.at_s)
        parts.append(
            f"<g><title>{escape(moment.label)}, at {moment.at_s:.1f} s</title>"
            f"<line x1='{x:.1f}' y1='{top + 10:g}' x2='{x:.1f}' y2='{bottom:g}' stroke='{FAINT}' "
            f"stroke-dasharray='2 3'/>{_badge(x, top + 8, number)}</g>"
        )
    return parts


def _badge(x: float, y: float, number: int) -> str:
    label = svg_text(x, y + 3.5, str(number), size=9, fill="#ffffff", anchor="middle")
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='7' fill='{INK}'/>{label}"


def _panel(box: Box, panel: Panel) -> list[str]:
    scale = Scale.of(panel.lines, panel.at_least, panel.at_most)
    return [
        svg_text(box.left, box.top - 8, panel.title, weight="600"),
        *_legend(box, panel.lines),
        *grid(box, scale),
        *bound_lines(box, scale, panel.bounds),
        *curves(box, scale, zip(panel.lines, COLOURS, strict=False)),
    ]


def _legend(box: Box, lines: Sequence[Line]) -> list[str]:
    """Write the names of the curves at the right, in their colours; a single one is named by the title."""
    if len(lines) < 2:
        return []
    parts: list[str] = []
    x = box.right
    for line, colour in reversed(list(zip(lines, COLOURS, strict=False))):
        parts.append(svg_text(x, box.top - 8, line.label, fill=colour, anchor="end", weight="600"))
        x -= 6.8 * len(line.label) + 14
    return parts
