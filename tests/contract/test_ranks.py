"""A rank over several sorted sets together is the one of all their scores sorted, whatever lies in which set."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.function_values import worth


def ranked(client: Any, parts: Sequence[Sequence[float]], *, enclosed: bool = False) -> list[float]:
    """Give the score at every rank; `enclosed` between the bounds that the same share of each set gives."""
    client.flushdb()
    for number, scores in enumerate(parts):
        client.zadd(f"set-{number}", {f"{number}-{n}": score for n, score in enumerate(scores)})
    keys = ", ".join(f"'set-{number}'" for number in range(len(parts)))
    bounds = (
        "for _, set in ipairs(sets) do local score = score_at(set, math.max(1, math.ceil(rank * set.n / total)))"
        " least, most = math.min(score, least or score), math.max(score, most or score) end "
    )
    found: list[str] = worth(
        client,
        f"local sets, total = sets_of({{ {keys} }}) local scores = {{}} for rank = 1, total do local least, most "
        f"{bounds if enclosed else ''} scores[rank] = exact(nth_score(sets, rank, least, most)) end return scores",
    )
    return [float(score) for score in found]


def overlapping(draw: random.Random) -> list[list[int]]:
    """Classes that wait in one queue: their instants lie among each other, many the same."""
    return [[draw.randrange(400) for _ in range(draw.randrange(1, 60))] for _ in range(draw.randrange(1, 6))]


def apart(draw: random.Random) -> list[list[int]]:
    """Deadlines of classes: each has a stretch of its own, or nearly."""
    return [
        [1000 * number + draw.randrange(1100) for _ in range(draw.choice((1, 5, 13, 40, 90)))]
        for number in range(draw.randrange(2, 5))
    ]


def tied(draw: random.Random) -> list[list[int]]:
    """Jobs submitted together: a few instants, of very many each."""
    return [[draw.choice((5, 5, 5, 6, 9)) for _ in range(draw.randrange(1, 70))] for _ in range(draw.randrange(2, 5))]


def lopsided(draw: random.Random) -> list[list[int]]:
    """One large set whose scores crowd at one end, and small ones anywhere."""
    large = [round(draw.random() ** 8 * 1e6) for _ in range(150)]
    return [large, *([draw.randrange(1_000_000) for _ in range(draw.randrange(1, 14))] for _ in range(3))]


@pytest.mark.parametrize("enclosed", [False, True])
@pytest.mark.parametrize("shape", [overlapping, apart, tied, lopsided])
def test_every_rank_is_that_of_all_scores_sorted(
    client: Any, shape: Callable[[random.Random], list[list[int]]], *, enclosed: bool
) -> None:
    draw = random.Random(shape.__name__)
    for _ in range(12):
        parts = shape(draw)

        assert ranked(client, parts, enclosed=enclosed) == sorted(score for scores in parts for score in scores)


def test_a_score_that_is_not_whole_or_without_end_keeps_its_rank(client: Any) -> None:
    halves, whole = [0.5 + n for n in range(20)], [float(n) for n in range(20)]
    endless = [[*halves, float("-inf")], [*whole, float("inf")]]

    assert ranked(client, endless) == sorted([*endless[0], *endless[1]])
