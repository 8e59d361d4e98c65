"""A rank over several sorted sets together is the one of all their scores sorted, whatever lies in which set."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.function_values import worth, worth_counted

# Between the scores at the same share of each set lies the one at that share of all.
_BOUNDS = (
    "for _, set in ipairs(sets) do local score = score_at(set, math.max(1, math.ceil(rank * set.n / total)))"
    " least, most = math.min(score, least or score), math.max(score, most or score) end "
)


def put(client: Any, parts: Sequence[Sequence[float]]) -> str:
    """Write the sets and give their keys as Lua has them in a table."""
    client.flushdb()
    for number, scores in enumerate(parts):
        client.zadd(f"set-{number}", {f"{number}-{n}": score for n, score in enumerate(scores)})
    return ", ".join(f"'set-{number}'" for number in range(len(parts)))


def ranked(client: Any, parts: Sequence[Sequence[float]], *, enclosed: bool = False) -> list[float]:
    """Give the score at every rank; `enclosed` between the bounds that the same share of each set gives."""
    keys, bounds = put(client, parts), _BOUNDS if enclosed else ""
    found: list[str] = worth(
        client,
        f"local sets, total = sets_of({{ {keys} }}) local scores = {{}} for rank = 1, total do local least, most "
        f"{bounds} scores[rank] = exact(nth_score(sets, rank, least, most)) end return scores",
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


def looks(client: Any, parts: Sequence[Sequence[float]], *, enclosed: bool) -> int:
    """Give the commands that 40 ranks of some sets take together, without those that count the sets."""
    keys, bounds = put(client, parts), _BOUNDS if enclosed else ""
    said: int = worth_counted(
        client,
        f"local looks = 0 for part = 1, 40 do local sets, total = sets_of({{ {keys} }}) local least, most "
        f"local rank = math.ceil(total * part / 40) {bounds} local before = redis.calls "
        f"nth_score(sets, rank, least, most) looks = looks + redis.calls - before end return looks",
    )
    return said


def deep(draw: random.Random) -> list[list[int]]:
    """Three large sets, each denser at another place."""
    return [[round(at + draw.gauss(0, 300_000)) for _ in range(2000)] for at in (0, 400_000, 1_000_000)]


# How many a guess by density needs, as measured: more of them would be a slower scrape. By halves alone `deep` takes
# 14,632.
_MOST_LOOKS: dict[tuple[Callable[[random.Random], list[list[int]]], bool], int] = {
    (overlapping, False): 4423,
    (overlapping, True): 4303,
    (apart, False): 2531,
    (apart, True): 2074,
    (tied, False): 4696,
    (tied, True): 1291,
    (lopsided, False): 3364,
    (lopsided, True): 3031,
    (deep, False): 8688,
    (deep, True): 8612,
}


@pytest.mark.parametrize(("shape", "enclosed"), _MOST_LOOKS)
def test_no_more_is_looked_at_than_a_guess_by_density_needs(
    client: Any, shape: Callable[[random.Random], list[list[int]]], *, enclosed: bool
) -> None:
    draw = random.Random(shape.__name__)
    assert sum(looks(client, shape(draw), enclosed=enclosed) for _ in range(12)) <= _MOST_LOOKS[shape, enclosed]
