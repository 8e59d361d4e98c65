"""Ranks over several sorted sets together are those of one sorted list, on a real server."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from sluicegate import functions
from tests.function_values import value_of, worth


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
    body += " for rank = 1, all do local sets, total = sets_of(keys) found[rank] = nth_score(sets, total, rank) end"
    body += " return found"
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


def test_a_count_is_taken_once_a_reading(client: Any) -> None:
    put(client, [1, 2])
    counted = "card('s0', cards) redis.call('ZADD', 's0', 9, 'new') return { seen, card('s0', cards), card('s0') }"
    assert worth(client, f"local cards = {{}} local seen = {counted}") == [2, 2, 3]
    assert value_of(client, "{ select(2, sets_of({ 's0', 's1' })), #sets_of({ 's0', 's1' }) }") == [3, 1]


# Count what the commands of a script answer; their results stay what they are.
COUNTING = """local redis = setmetatable({ fetched = 0 }, { __index = redis })
function redis.call(...)
  local answer = getmetatable(redis).__index.call(...)
  redis.fetched = redis.fetched + (type(answer) == 'table' and #answer or 1)
  return answer
end
"""


@pytest.mark.parametrize("sets", [[range(1000), range(500, 1500)], [range(1000)], [range(900), range(2000, 2100)]])
def test_however_much_there_is_few_scores_are_fetched(client: Any, sets: list[range]) -> None:
    ordered = put(client, *map(list, sets))
    rank = len(ordered) // 2
    body = f"local sets, all = sets_of({{ 's0', 's1' }}) return {{ nth_score(sets, all, {rank}), redis.fetched }}"
    source = f"#!lua\n{COUNTING}{functions.body()}\nreturn cjson.encode((function() {body} end)())"
    score, fetched = json.loads(client.eval(source, 0))
    assert score == ordered[rank - 1]
    assert fetched < 150
