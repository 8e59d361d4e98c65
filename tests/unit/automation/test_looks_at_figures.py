"""What of the looks at a figure is written down: every break of what has held, and the rest at a pace."""

from __future__ import annotations

import random

import pytest

from automation.steps.wait_for import is_worth_a_note
from runbooks.watch import Look, Standing, held_ms

H, N, X = Standing.HOLDS, Standing.NOT_YET, Standing.NO_DATA
LOOK_MS = 200.0


@pytest.mark.parametrize(
    ("last", "look", "noted"),
    [
        (None, (0, X), True),
        ((0, H), (100, H), False),
        ((0, H), (200, H), True),
        ((0, N), (5000, N), False),
        ((0, H), (100, N), True),
        ((0, H), (100, X), True),
        ((0, N), (100, H), False),
        ((0, N), (1000, H), True),
        ((0, N), (999, X), False),
        ((0, X), (1000, N), True),
    ],
)
def test_a_look_is_written_down_where_it_has_to_be(
    last: tuple[int, Standing] | None, look: tuple[int, Standing], noted: bool
) -> None:
    assert is_worth_a_note(Look(*last) if last else None, Look(*look), LOOK_MS) is noted


def test_a_figure_that_swings_at_every_look_fills_no_journal_and_never_seems_to_have_held() -> None:
    chance, written, seen = random.Random(6), list[Look](), list[Look]()
    for at_ms in range(0, 3_600_000, 100):
        look = Look(at_ms, chance.choice((H, N, X)))
        seen.append(look)
        if is_worth_a_note(written[-1] if written else None, look, LOOK_MS):
            written.append(look)
        held = held_ms([*written, look], longest_gap_ms=1000)
        assert held <= held_ms(seen[-100:], longest_gap_ms=1000), "no more than what was seen"
    assert len(written) < 8000
