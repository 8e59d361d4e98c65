"""Ranks over several sorted sets together are those of one sorted list, on a real server."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.function_values import value_of, worth, worth_counted


def put(client: Any, *sets: list[int]) -> list[int]:
    """Write the scores of some sets, and give all of them in order."""
    client.flushall()
    for number, scores in enumerate(sets):
        if scores:
            client.zadd(f"s{number}", {f"{number}-{n}": score for n, score in enumerate(scores)})
    return sorted(score for scores in sets for score in scores)


def ranked(client: Any, many_sets: int) -> list[int]:
    """Give the score at every rank, as the functions find it."""
    keys = ", ".join(f"'s{number}'" for number in range(many_sets))
    body = f"local found, keys = {{}}, {{ {keys} }} local _, all = sets_of(keys)"
    body += " for rank = 1, all do found[rank] = nth_score(sets_of(keys), rank) end return found"
    found: list[int] = worth(client, body)
    return found


@pytest.mark.parametrize(
    "sizes",
    [(24,), (25,), (12, 12), (12, 13), (1, 24), (24, 1), (30, 0, 30), (1, 1, 60), (40, 40, 40), (9, 8, 7, 6, 5)],
)
def test_every_rank_is_that_of_one_sorted_list(client: Any, sizes: tuple[int, ...]) -> None:
    dice = random.Random(4711)
    for spread in (3, 40, 10**12):
        ordered = put(client, *[[dice.randrange(spread) for _ in range(size)] for size in sizes])
        assert ranked(client, len(sizes)) == ordered


def test_sets_one_after_the_other_and_inside_each_other(client: Any) -> None:
    for sets in (
        [range(30), range(30, 60)],
        [range(30, 60), range(30)],
        [range(0, 90, 3), range(20, 40)],
        [range(50), range(50)],
    ):
        ordered = put(client, *[list(scores) for scores in sets])
        assert ranked(client, 2) == ordered


def test_the_sets_that_hold_anything_are_counted(client: Any) -> None:
    put(client, [1, 2])
    assert value_of(client, "{ select(2, sets_of({ 's0', 's1' })), #sets_of({ 's0', 's1' }) }") == [2, 1]
    assert value_of(client, "{ select(2, sets_of({ 's1' })), #sets_of({ 's1' }) }") == [0, 0]


@pytest.mark.parametrize("size", [12, 13])
def test_what_a_set_holds_below_and_up_to_a_score_is_counted(client: Any, size: int) -> None:
    """A small set is fetched as a whole, and then counted without a call."""
    put(client, [5] * 3 + [7] + list(range(9, 5 + size)))
    asked = ", ".join(f"counted_up_to(set, {n}, false), counted_up_to(set, {n}, true)" for n in (4, 5, 6, 7, 99))
    body = (
        f"local set = load_few(sets_of({{ 's0' }})[1]) local whole = set.scores and 1 or 0 return {{ whole, {asked} }}"
    )

    client.config_resetstat()
    found = worth(client, body)

    assert found == [int(size == 12), 0, 0, 0, 3, 3, 3, 3, 4, size, size]
    assert ("cmdstat_zcount" in client.info("commandstats")) == (size > 12)


@pytest.mark.parametrize("size", [12, 13])
def test_its_ends_once_they_are_known_change_no_count(client: Any, size: int) -> None:
    put(client, [5] * 3 + [7] + list(range(9, 5 + size)))
    last = 4 + size
    asked = ", ".join(
        f"counted_up_to(set, {n}, false), counted_up_to(set, {n}, true)" for n in (4, 5, 7, last, last + 1)
    )
    body = f"local set = load_few(sets_of({{ 's0' }})[1]) first_score(set) last_score(set) return {{ {asked} }}"

    assert worth(client, body) == [0, 0, 0, 3, 3, 4, size - 1, size, size, size]


@pytest.mark.parametrize("size", [3, 40])
def test_the_ends_of_a_set_are_asked_for_once(client: Any, size: int) -> None:
    put(client, list(range(10, 10 + size)))
    both = "first_score(set), last_score(set)"
    ends = f"local set = load_few(sets_of({{ 's0' }})[1]) return {{ {both}, {both} }}"

    client.config_resetstat()
    assert worth(client, ends) == [10, 9 + size] * 2
    assert client.info("commandstats")["cmdstat_zrange"]["calls"] == (1 if size == 3 else 2)


def test_a_score_is_told_without_loss(client: Any) -> None:
    told = value_of(client, "{ exact(2^53 - 1), exact(-7), exact(0.1), exact(1/0), exact(1.5e300) }")
    assert told[:2] == ["9007199254740991", "-7"]
    assert [float(text) for text in told[2:]] == [0.1, float("inf"), 1.5e300]


@pytest.mark.parametrize("sets", [[range(1000), range(500, 1500)], [range(1000)], [range(900), range(2000, 2100)]])
def test_however_much_there_is_few_scores_are_fetched(client: Any, sets: list[range]) -> None:
    ordered = put(client, *map(list, sets))
    rank = len(ordered) // 2
    body = f"local sets = sets_of({{ 's0', 's1' }}) return {{ nth_score(sets, {rank}), redis.fetched }}"
    score, fetched = worth_counted(client, body)
    assert score == ordered[rank - 1]
    assert fetched < 40
