"""When the Sentinels are asked whether the primary is elsewhere, and what it means that none answers."""

from __future__ import annotations

import redis

from sluicegate.primary_watch import Place, PrimaryWatch
from tests.unit.test_worker_parts import HandClock

HERE, THERE = ("a", 1), ("b", 1)


class Sentinels:
    """Count how often they are asked, and answer what a test says; no answer where that is nothing."""

    def __init__(self) -> None:
        self.primary: Place | None = HERE
        self.asked = 0

    def __call__(self) -> Place:
        self.asked += 1
        if self.primary is None:
            raise redis.exceptions.ConnectionError("nobody is there")
        return self.primary


def test_a_primary_that_was_replaced_is_noticed_within_a_second_and_they_are_asked_once_in_it() -> None:
    clock, sentinels = HandClock(), Sentinels()
    watch = PrimaryWatch(sentinels, clock)
    sentinels.primary = THERE
    assert (watch.has_left(HERE), sentinels.asked) == (False, 0)
    clock.seconds += 1.0
    assert (watch.has_left(HERE), watch.has_left(HERE), sentinels.asked) == (True, False, 1)
    clock.seconds += 1.0
    assert (watch.has_left(THERE), sentinels.asked) == (False, 2)


def test_nothing_is_left_because_no_sentinel_answers_and_they_are_asked_less_often() -> None:
    clock, sentinels = HandClock(), Sentinels()
    watch = PrimaryWatch(sentinels, clock)
    sentinels.primary = None
    gaps, last_s = [], 0
    for second in range(1, 80):
        clock.seconds += 1.0
        asked = sentinels.asked
        assert not watch.has_left(HERE)
        if sentinels.asked > asked:
            gaps.append(second - last_s)
            last_s = second
    assert gaps == [1, 1, 2, 4, 8, 16, 16, 16]
    sentinels.primary = THERE
    clock.seconds += 16.0
    assert watch.has_left(HERE)
    clock.seconds += 1.0
    assert watch.has_left(HERE)
