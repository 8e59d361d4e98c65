"""What the bench says of a row: reached, missed, or nothing to reach."""

from __future__ import annotations

import pytest

from bench.peer_rows import peer_json, peer_lines, peer_rows
from bench.rows import Bound, Row, ratios
from bench.side_by_side import Figures, Measured, Share, unexpected


def figures(rate: float, *, at_once: float | None = None, cost: float = 100.0) -> Figures:
    return Figures(rate, at_once, rate, cost, cost, cost, cost)


def row(name: str, rows: list[Row]) -> Row:
    (found,) = (one for one in rows if one.name == name)
    return found


@pytest.mark.parametrize(
    ("samples", "at_least", "met"),
    [([3.0, 5.0, 4.0], True, True), ([3.0, 3.0, 9.0], True, False), ([4.0], False, True), ([4.1], False, False)],
)
def test_the_median_is_held_against_the_target(samples: list[float], at_least: bool, met: bool) -> None:
    assert Row("one", samples, "×", 4.0, at_least).met is met


def test_a_further_condition_that_is_missed_misses_the_row_and_is_named() -> None:
    late = Bound("others wait", [12.0], "ms", 10.0)
    one = Row("snapshot", [1.0], "×", 1.2, at_least=False, also=(late,))
    assert one.met is False
    assert "others wait 12 (12–12) ms, ≤ 10 MISSED" in one.line()
    assert one.as_json()["also"] == [late.as_json()]


def test_what_was_not_measured_is_not_met_and_what_has_no_target_is_neither() -> None:
    assert Row("one", [], "×", 4.0, True).met is False
    assert Row("one", [9.0], "×", None, True).met is None


def test_figures_are_divided_within_their_round() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]


def test_ours_is_held_against_the_best_peer_of_the_same_round() -> None:
    ours = Measured("sluicegate", [figures(60.0, at_once=80.0, cost=10.0), figures(60.0, cost=10.0)])
    peers = [
        Measured("rq", [figures(1.0, cost=50.0), figures(30.0, cost=40.0)]),
        Measured("saq", [figures(10.0, at_once=20.0, cost=100.0), figures(5.0, cost=100.0)]),
    ]
    rows = peer_rows(ours, peers)
    assert row("submit_peers", rows).samples == [80 / 20, 60 / 30]
    assert row("end_to_end", rows).samples == [60 / 10, 60 / 30]
    assert row("worker_cpu", rows).samples == [10 / 50, 10 / 40]
    assert row("bytes", rows).samples == [10 / 75, 10 / 70]


def test_without_any_peer_their_rows_are_missed_and_not_left_out() -> None:
    rows = peer_rows(Measured("sluicegate", [figures(60.0)]), [Measured("rq", error="it does not start")])
    assert [one.met for one in rows] == [False] * 5


def test_a_peer_that_does_not_run_fails_the_bench_and_is_listed_with_its_error() -> None:
    peers = [Measured("rq", error="ImportError"), Measured("saq", [figures(1.0)])]
    assert unexpected(peers) == ["rq"]
    assert peer_json(peers[0], "rq")["error"] == "ImportError"
    assert any("rq" in line and "ImportError" in line for line in peer_lines(Measured("sluicegate"), peers))


def test_a_share_of_a_round_gives_every_caller_the_same_number_of_jobs() -> None:
    assert [Share(0.3).of(n) for n in (100, 1000, 2010)] == [50, 300, 600]
