"""When rules were evaluated, read from what they wrote."""

from __future__ import annotations

from rules.backtest.evaluations import Evaluations


def test_the_interval_is_what_most_evaluations_are_apart_though_some_were_missed() -> None:
    assert Evaluations.found([0, 2000, 4000, 8000, 10_000], [0, 2000]).interval_ms == 2000
    assert Evaluations.found([5], []).interval_ms == 1


def test_every_instant_is_asked_for_by_steps_from_the_first_of_its_grid() -> None:
    """A rule file under another name is evaluated at other instants of the interval."""
    found = Evaluations.found([300, 2300, 4300, 8300, 10_900, 12_900], [])
    assert list(found.grids()) == [(300, 8300), (10_900, 12_900)]
    assert list(Evaluations.found([], []).grids()) == []


def test_a_missed_evaluation_forgets_nothing() -> None:
    instants = [0, 1000, 2000, 4000, 5000]
    assert Evaluations.found(instants, instants).stretches == (tuple(instants),)


def test_a_restart_is_seen_by_the_records_that_come_before_alerts_do() -> None:
    told = [0, 1000, 2000, 7000, 8000]
    recorded = [0, 1000, 2000, 5000, 6000, 7000, 8000]
    found = Evaluations.found(told, recorded)
    assert found.stretches == ((0, 1000, 2000), (5000, 6000, 7000, 8000))
    assert found.since(1000) == (1000, 2000, 7000, 8000)


def test_a_long_silence_without_records_is_taken_for_a_restart_and_one_with_them_is_not() -> None:
    told = [0, 1000, 2000, 6000, 7000]
    assert len(Evaluations.found(told, [0, 1000, 2000]).stretches) == 2
    assert len(Evaluations.found(told, told).stretches) == 1


def test_thinned_keeps_whole_intervals() -> None:
    every = Evaluations.regular(0, 10_000, 1000)
    assert every.thinned(2500).instants == (0, 3000, 6000, 9000)
    assert every.thinned(2500).interval_ms == 3000
    assert every.thinned(10).instants == every.instants


def test_regular_evaluations_lie_at_whole_intervals() -> None:
    assert Evaluations.regular(1, 6000, 2000).instants == (2000, 4000, 6000)
