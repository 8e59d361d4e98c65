"""`for`, `keep_firing_for` and the joining of instants, on instants a second apart."""

from __future__ import annotations

import pytest

from rules.backtest.replay import AlertState, Firing, Holding, firings, replay, stretches_of

MARKS = {AlertState.PENDING: "p", AlertState.FIRING: "F"}


def drawn(present: str, for_s: float, keep_s: float) -> str:
    """Replay a picture of presence (`x` is a sample, `|` a restart before the next instant) into one of states."""
    stretches: list[list[int]] = [[]]
    seen: set[int] = set()
    at = 0
    for mark in present:
        if mark == "|":
            stretches.append([])
            continue
        stretches[-1].append(at * 1000)
        if mark == "x":
            seen.add(at * 1000)
        at += 1
    states = dict(replay(stretches, seen, Holding(round(for_s * 1000), round(keep_s * 1000))))
    return "".join(MARKS[states[number * 1000]] if number * 1000 in states else "." for number in range(at))


@pytest.mark.parametrize(
    ("present", "for_s", "keep_s", "states"),
    [
        pytest.param(".xx.", 0, 0, ".FF.", id="no for: at once"),
        pytest.param(".xxxx.", 2, 0, ".ppFF.", id="for is over at the third evaluation"),
        pytest.param(".xxx.", 1.5, 0, ".ppF.", id="for between two evaluations"),
        pytest.param(".xx.xx.", 2, 9, ".pp.pp.", id="pending begins anew, and is kept by nothing"),
        pytest.param(".xx......", 1, 3, ".pFFFF...", id="kept until so much has passed since the first gap"),
        pytest.param(".xx.x.....", 1, 2, ".pFFFFF...", id="a sample in time ends the keeping"),
        pytest.param(".xx.....x.", 0, 2, ".FFFF...FF", id="after the keep it begins anew"),
        pytest.param("xx|xxx", 1, 0, "pFpFF", id="a restart forgets what was pending and firing"),
        pytest.param("xx..|..", 1, 9, "pFFF..", id="a restart forgets what was kept"),
        pytest.param("....", 0, 9, "....", id="nothing"),
    ],
)
def test_states_follow_each_other_as_prometheus_has_them(
    present: str, for_s: float, keep_s: float, states: str
) -> None:
    assert drawn(present, for_s, keep_s) == states


def test_a_stretch_ends_at_the_instant_that_ended_it_or_at_the_last_of_all() -> None:
    assert list(stretches_of({2, 3, 5, 6}, (1, 2, 3, 4, 5, 6))) == [(2, 4), (5, 6)]
    assert list(stretches_of({6}, (1, 2, 6))) == [(6, 6)]
    assert list(stretches_of(set(), (1, 2))) == []


def test_only_what_fires_at_told_evaluations_is_a_firing() -> None:
    states = [(1, AlertState.PENDING), (2, AlertState.FIRING), (3, AlertState.FIRING), (7, AlertState.FIRING)]
    assert firings(states, (2, 3, 4, 5)) == (Firing(2, 4),)
