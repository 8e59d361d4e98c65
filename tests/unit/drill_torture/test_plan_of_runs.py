"""A torture of runs tells every story and does every mischief again and again, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from drill.runs_torture.plan import LEAST_HITS, Mischief, Plan, Story, mischiefs, stories

WHOLE = Plan(runs=200, queues=10, seed=7, within_s=1200)


def test_ten_queues_with_twenty_runs_each_meet_every_story_often_enough() -> None:
    told = Counter(story for queue in range(10) for story in islice(stories(WHOLE, queue), 20))
    assert set(told) == set(Story)
    assert min(told.values()) >= LEAST_HITS


def test_every_mischief_comes_in_every_round() -> None:
    done = list(islice(mischiefs(WHOLE), 36))
    assert set(done) == set(Mischief)
    assert Counter(done)[Mischief.STOP_EXECUTOR] == 10


def test_the_same_seed_plans_the_same_and_another_something_else() -> None:
    def told(seed: int) -> list[Story]:
        return list(islice(stories(Plan(10, 2, seed, 60), 1), 24))

    assert told(7) == told(7)
    assert told(7) != told(8)


def test_a_short_torture_demands_no_hits() -> None:
    assert WHOLE.least_hits == LEAST_HITS
    assert Plan(10, 3, 7, 60).least_hits == 0
