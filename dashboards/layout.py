"""Where does each panel stand? From left to right and from top to bottom, as Grafana's grid has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dashboards.model import Panel, Row

COLUMNS = 24
_HEADING_HEIGHT = 1


@dataclass(frozen=True, slots=True)
class Place:
    """Hold where a panel or a row's heading stands, in columns and rows of the grid."""

    shown: Panel | Row
    x: int
    y: int
    width: int
    height: int


def laid_out(rows: Iterable[Row]) -> Iterator[Place]:
    """Give the place of every heading and every panel."""
    top = 0
    for row in rows:
        yield Place(row, 0, top, COLUMNS, _HEADING_HEIGHT)
        top += _HEADING_HEIGHT
        left = tallest = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            yield Place(panel, left, top, panel.width, panel.height)
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest
