"""Which pages announced harm, how early, and which came for nothing: each bound from both sides."""

from __future__ import annotations

import pytest

from rules.backtest.harm import Closing, Harm, Incident, Miss
from rules.backtest.replay import Firing

REACH = 900
MISSES = (Miss(10_000, "lint", 2), Miss(10_900, "plan", 1), Miss(20_000, "lint", 1))
HARM = Harm(MISSES, (), REACH)
FIRST = HARM.incidents[0]


def test_misses_at_most_a_longest_deadline_apart_are_one_incident() -> None:
    assert HARM.incidents == (Incident(10_000, 10_900, 3, ("lint", "plan")), Incident(20_000, 20_000, 1, ("lint",)))
    apart = Harm((Miss(0, "lint", 1), Miss(REACH + 1, "lint", 1)), (), REACH)
    assert len(apart.incidents) == 2


@pytest.mark.parametrize(
    ("begins", "is_near"), [(9_099, False), (9_100, True), (10_000, True), (11_800, True), (11_801, False)]
)
def test_a_page_is_about_misses_within_a_longest_deadline_of_its_start(begins: int, is_near: bool) -> None:
    assert HARM.near(Firing(begins, 50_000)) is is_near


def test_what_looks_back_further_is_judged_as_far_back() -> None:
    assert HARM.near(Firing(20_000 + 5000, 30_000), looks_back_ms=5000)
    assert not HARM.near(Firing(20_000 + 5001, 30_000), looks_back_ms=5000)


@pytest.mark.parametrize(
    ("begins", "is_near"), [(4_099, False), (4_100, True), (5_500, True), (6_900, True), (6_901, False)]
)
def test_a_gate_that_refused_callers_is_harm_too(begins: int, is_near: bool) -> None:
    closed = Harm((), (Closing("reject_new", 5_000, 6_000),), REACH)
    assert closed.near(Firing(begins, begins)) is is_near


def test_states_that_follow_each_other_are_one_closing() -> None:
    closings = (Closing("drain", 20, 30), Closing("reject_new", 10, 20), Closing("drain", 50, 60))
    assert Harm((), closings, REACH).shut == ((10, 30), (50, 60))


@pytest.mark.parametrize(
    ("pages", "lead"),
    [
        ([(9_100, 9_200)], 900),
        ([(9_099, 9_200)], None),
        ([(9_500, 9_600), (9_700, 9_800)], 500),
        ([(10_300, 10_400)], -300),
        ([(11_800, 11_900)], -1_800),
        ([(11_801, 11_900)], None),
        ([], None),
    ],
)
def test_the_lead_is_that_of_the_first_page_about_the_incident(pages: list[tuple[int, int]], lead: int | None) -> None:
    assert HARM.lead_ms(FIRST, [Firing(*page) for page in pages]) == lead


def test_what_fires_always_announces_nothing() -> None:
    always = Firing(0, 99_000)
    assert HARM.lead_ms(FIRST, [always]) is None
    assert HARM.fired_already(FIRST, [always])
    assert not HARM.fired_already(FIRST, [Firing(0, 10_000), Firing(9_100, 99_000)])
