"""Draw what the policies came to, as one SVG: a row a figure, a group of bars a load, a bar a policy. Pure.

Own code, like the drill's pictures: it must stand in a page without network, and be small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from bench.overload.scoring import Score
from sluicegate.plot import WIDTH
from sluicegate.svg import ALARM, COLOURS, FAINT, GRID, INK, svg_open, svg_text

_LEFT, _RIGHT, _TOP, _PANEL, _GAP = 58, 16, 64, 120, 46


@dataclass(frozen=True, slots=True)
class Panel:
    """Hold one row of the picture; `bound` is drawn over the shapes that it counts for."""

    title: str
    figure: Callable[[Score], float]
    most: float
    bounds: Sequence[tuple[str, float]]


PANELS = (
    Panel(
        "work done in time ÷ capacity; burst: jobs done in time",
        lambda one: one.in_time,
        1.0,
        (("2x", 0.95), ("burst", 0.93)),
    ),
    Panel("accepted jobs that missed their deadline", lambda one: one.missed, 1.0, (("2x", 0.01),)),
    Panel(
        "the least served class ÷ its fair share; burst: of its jobs", lambda one: one.least_fair, 1.0, (("2x", 0.8),)
    ),
)


def draw(scores: Sequence[Score], title: str) -> str:
    """Return the picture as one SVG element."""
    shapes, policies = _seen(one.shape for one in scores), _seen(one.policy for one in scores)
    height = _TOP + len(PANELS) * (_PANEL + _GAP)
    parts = [svg_open(WIDTH, height, title), svg_text(_LEFT, 17, title, size=13, weight="600")]
    x = float(_LEFT)
    for policy, colour in zip(policies, COLOURS, strict=False):
        parts += [
            f"<rect x='{x:.0f}' y='27' width='10' height='10' rx='2' fill='{colour}'/>",
            svg_text(x + 14, 36, policy),
        ]
        x += 30 + 6.6 * len(policy)
    for number, panel in enumerate(PANELS):
        parts += _panel(panel, scores, shapes, policies, _TOP + number * (_PANEL + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _seen(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _panel(
    panel: Panel, scores: Sequence[Score], shapes: Sequence[str], policies: Sequence[str], top: float
) -> list[str]:
    def y(value: float) -> float:
        return top + _PANEL * (1 - min(value, panel.most) / panel.most)

    parts = [svg_text(_LEFT, top - 6, panel.title, weight="600")]
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        level = y(value * panel.most)
        parts.append(f"<line x1='{_LEFT}' y1='{level:.1f}' x2='{WIDTH - _RIGHT}' y2='{level:.1f}' stroke='{GRID}'/>")
        parts.append(svg_text(_LEFT - 6, level + 4, f"{value * panel.most:.0%}", fill=FAINT, anchor="end"))
    group = (WIDTH - _LEFT - _RIGHT) / len(shapes)
    bar = (group - 24) / len(policies)
    for place, shape in enumerate(shapes):
        left = _LEFT + place * group + 12
        parts.append(svg_text(left + (group - 24) / 2, top + _PANEL + 14, _said(shape), fill=FAINT, anchor="middle"))
        for one in (one for one in scores if one.shape == shape):
            number = policies.index(one.policy)
            parts += _bar(left + number * bar, bar - 3, y, panel.figure(one), COLOURS[number], f"{one.policy}, {shape}")
        for level in (y(bound) for name, bound in panel.bounds if name == shape):
            parts.append(
                f"<line x1='{left - 6:.1f}' y1='{level:.1f}' x2='{left + group - 18:.1f}' y2='{level:.1f}' "
                f"stroke='{ALARM}' stroke-dasharray='5 4'/>"
            )
    return parts


def _bar(x: float, width: float, y: Callable[[float], float], value: float, colour: str, label: str) -> list[str]:
    top, bottom = y(value), y(0.0)
    inside = top < y(1.0) + 9
    shape = (
        f"<g><title>{escape(label)}: {value:.1%}</title><rect x='{x:.1f}' y='{top:.1f}' width='{width:.1f}' "
        f"height='{max(0.5, bottom - top):.1f}' fill='{colour}'/></g>"
    )
    level, ink = (top + 9, "#ffffff") if inside else (top - 2, INK)
    return [shape, svg_text(x + width / 2, level, f"{100 * value:.1f}", size=8, fill=ink, anchor="middle")]


def _said(shape: str) -> str:
    return "3× burst, mean 1.0×" if shape == "burst" else shape.replace("x", "× capacity")
