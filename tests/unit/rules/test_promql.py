"""Numbers, durations and strings as Prometheus 2.42 reads them, and templates that leave nothing blank."""

from __future__ import annotations

import jinja2
import pytest

from rules.cases import Phase, Signal, clock, spell
from rules.promql import duration, escape, number
from rules.render import quoted, render, single_quoted


@pytest.mark.parametrize(("value", "text"), [(20, "20"), (0.05, "0.05"), (0.1 + 0.2, "0.3"), (-4.5, "-4.5"), (0, "0")])
def test_numbers_have_no_tail(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(("seconds", "text"), [(4, "4s"), (0.5, "500ms"), (1.5, "1500ms"), (0, "0s"), (300, "300s")])
def test_durations_have_no_fraction(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_strings_are_escaped() -> None:
    assert escape('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
    assert quoted("no: yes") == '"no: yes"'
    assert single_quoted("it's") == "'it''s'"


def test_a_name_that_the_template_needs_and_nobody_gave_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render("sluicegate.rules.yml.j2", queue="default")


def test_a_series_goes_on_through_its_phases_and_is_marked_where_it_ends() -> None:
    phases = (
        Phase({"a": Signal(3), "t": clock()}, 2),
        Phase({"a": None, "t": clock()}, 3),
        Phase({}, 2, exporter_up=False),
        Phase({"a": Signal(7), "t": clock(1)}, 1),
    )

    assert spell("a", phases, 2) == "3+0x1 stale _x2 _x2 7+0x0"
    assert spell("t", phases, 2) == "0+2x1 4+2x2 stale _x1 13+2x0"
    assert spell("never", phases, 2) == "_x2 _x3 _x2 _x1"
