"""Draw a dashboard with its data as one page that loads nothing: the same panels, places and thresholds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2

from dashboards.drawing import draw_panel
from dashboards.layout import COLUMNS, laid_out
from dashboards.model import Row
from dashboards.plotted import Plotted
from sluicegate.gate import DrainState
from sluicegate.svg import STATE_COLOURS

# Grafana's cells are 30 pixels high and 8 apart.
_CELL_WIDTH, _CELL_HEIGHT, _GAP, _MARGIN, _HEAD = 50, 30, 8, 16, 62
_TITLE_HEIGHT = 26


@dataclass(frozen=True, slots=True)
class Card:
    """Hold what stands at one place of the page, in pixels; a heading has no picture."""

    left: int
    top: int
    width: int
    height: int
    title: str
    svg: str = ""


def size(plotted: Plotted) -> tuple[int, int]:
    """Give width and height of the page in pixels."""
    bottom = max(place.y + place.height for place in laid_out(plotted.dashboard.rows))
    return COLUMNS * _CELL_WIDTH + 2 * _MARGIN - _GAP, _HEAD + bottom * (_CELL_HEIGHT + _GAP) + _MARGIN


def render_page(plotted: Plotted, says: str) -> str:
    """Render the page; `says` is a line under the title: whose data it is."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, autoescape=True
    )
    width, height = size(plotted)
    return environment.get_template("page.html.j2").render(
        dashboard=plotted.dashboard,
        cards=list(_cards(plotted)),
        says=says,
        width=width,
        height=height,
        closed=[(state, colour) for state, colour in STATE_COLOURS.items() if state != DrainState.ADMIT],
    )


def _cards(plotted: Plotted) -> Iterator[Card]:
    for place in laid_out(plotted.dashboard.rows):
        left, top = _MARGIN + place.x * _CELL_WIDTH, _HEAD + place.y * (_CELL_HEIGHT + _GAP)
        width, height = place.width * _CELL_WIDTH - _GAP, place.height * (_CELL_HEIGHT + _GAP) - _GAP
        svg = ""
        if not isinstance(place.shown, Row):
            svg = draw_panel(place.shown, plotted, width - 2, height - _TITLE_HEIGHT - 2)
        yield Card(left, top, width, height, place.shown.title, svg)
