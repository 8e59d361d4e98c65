"""The picture: well-formed, small, and true to its numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from drill.load import Jobs
from drill.picture import picture_of
from drill.timeline import Mark
from sluicegate.plot import WIDTH, Moment, Panel, Picture, Strip, draw
from sluicegate.svg import Bound, Box, Line, Span, time_axis
from tests.readings import AT_MS
from tests.unit.drill_run.story import sample, story, submission, timeline

SVG = "{http://www.w3.org/2000/svg}"
EMPTY = Picture("a drill", 10.0, (), (), ())


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 (our own picture)


def panel(*values: float | None, **fields: Any) -> Panel:
    points = tuple((float(number), value) for number, value in enumerate(values))
    return replace(Panel("age", (Line("p95", points),)), **fields)


def polylines(picture: Picture) -> list[list[tuple[float, float]]]:
    root = parsed(draw(picture))
    found = []
    for line in root.iter(f"{SVG}polyline"):
        pairs = (point.split(",") for point in line.attrib["points"].split())
        found.append([(float(x), float(y)) for x, y in pairs])
    return found


def test_a_gap_cuts_the_curve() -> None:
    assert [len(piece) for piece in polylines(replace(EMPTY, panels=(panel(1, 2, None, 3, 4, 5),)))] == [2, 3]


def test_a_level_stretch_needs_two_points_only() -> None:
    assert [len(piece) for piece in polylines(replace(EMPTY, panels=(panel(5, 5, 5, 5, 5, 7),)))] == [3]


def test_higher_values_stand_higher_and_later_ones_further_right() -> None:
    ((first, second, third),) = polylines(replace(EMPTY, panels=(panel(0, 10, 5, at_least=10.0),)))
    assert first[0] < second[0] < third[0]
    assert second[1] < third[1] < first[1]


def test_what_lies_above_at_most_is_drawn_at_the_edge() -> None:
    ((low, high, edge),) = polylines(replace(EMPTY, panels=(panel(0, 900, 10, at_least=10.0, at_most=10.0),)))
    assert high[1] == edge[1] < low[1]


def test_negative_values_keep_their_place_below_zero() -> None:
    ((below, zero),) = polylines(replace(EMPTY, panels=(panel(-5, 0, at_least=10.0),)))
    assert below[1] > zero[1]


def test_text_is_escaped() -> None:
    picture = replace(
        EMPTY, title="<script>&", strips=(Strip("gate", (Span("a<b", 0, 9),)),), moments=(Moment("x > 'y'", 2),)
    )
    text = draw(picture)
    assert "<script>" not in text
    assert parsed(text).attrib["aria-label"] == "<script>&"


def test_labels_of_close_bounds_do_not_overlap() -> None:
    bounds = (Bound("drain", 5.0), Bound("reject", 4.9), Bound("recovered", 4.8))
    root = parsed(draw(replace(EMPTY, panels=(panel(1, at_least=30.0, bounds=bounds),))))
    heights = sorted(float(text.attrib["y"]) for text in root.iter(f"{SVG}text") if text.attrib["font-size"] == "9")
    assert len(heights) == 3
    assert all(after - before >= 11 for before, after in pairwise(heights))


def test_labels_of_bounds_stand_beside_the_diagram_where_no_line_runs() -> None:
    root = parsed(draw(replace(EMPTY, panels=(panel(1, at_least=30.0, bounds=(Bound("drain, timeouts 0.1", 5.0),)),))))
    edge = max(float(line.attrib["x2"]) for line in root.iter(f"{SVG}line"))
    (label,) = [text for text in root.iter(f"{SVG}text") if text.attrib["font-size"] == "9"]
    assert float(label.attrib["x"]) > edge
    assert float(label.attrib["x"]) + 5.2 * len(label.text or "") <= WIDTH


def test_the_gates_states_are_drawn_from_its_log_without_a_gap() -> None:
    picture = picture_of(story(), "title")
    states = picture.strips[0].spans
    assert [span.label for span in states] == ["admit", "reject_new", "drain", "recovering", "admit"]
    for before, after in pairwise(states):
        assert before.to_s == after.from_s
    assert states[0].from_s == 0
    assert states[-1].to_s == picture.seconds == 36


def test_what_the_drill_did_is_numbered_in_the_picture() -> None:
    marked = story(timeline=timeline(marks=[Mark(AT_MS + 3000, "fault_on", "latency on every call")]))
    assert re.search(r">3\.0 s  latency on every call<", draw(picture_of(marked, "title")))


@pytest.mark.parametrize("seconds", [0.0, 1.0, 59.0, 3600.0])
def test_any_length_can_be_drawn(seconds: float) -> None:
    parsed(draw(replace(EMPTY, seconds=seconds, panels=(panel(0.0, 0.02),))))


def test_a_panel_without_any_value_is_left_out() -> None:
    short = timeline(samples=[sample(0), sample(4)])
    titles = [panel.title for panel in picture_of(story(timeline=short, submissions=()), "a drill").panels]
    assert not any("slack" in title or "provider" in title or "submissions" in title for title in titles)
    assert titles[0].startswith("queue_age_p95_seconds")


def test_a_burst_of_a_queue_of_its_own_is_counted_whole() -> None:
    burst = tuple(submission(number, 2.1) for number in range(20))
    for jobs, counted in ((Jobs(20, "test-patch"), 20.0), (None, None)):
        panels = picture_of(story(submissions=burst, jobs_of_its_own=jobs), "a drill").panels
        accepted = dict(panels[-1].lines[0].points)
        assert accepted.get(2.5) == counted


@pytest.mark.parametrize(
    ("seconds", "last"), [(36, "35 s"), (3600, "60 min"), (86_400, "24 h"), (7 * 86_400, "7 d"), (70 * 86_400, "70 d")]
)
def test_the_time_axis_counts_in_the_largest_whole_unit(seconds: float, last: str) -> None:
    ticks = [parsed(text).text for text in time_axis(Box(58, 0, 796, 10, seconds), 20)]
    assert ticks[-1] == last
    assert ticks[0] == f"0 {last.partition(' ')[2]}"
    assert len(ticks) <= 13
