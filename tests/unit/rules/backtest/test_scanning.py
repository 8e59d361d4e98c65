"""Scanning a long history in coarse steps finds what looking at every evaluation finds, and asks for far less."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from rules.backtest import run
from rules.backtest.evaluations import Evaluation, Evaluations
from rules.backtest.history import History, Inputs, Labels
from rules.backtest.run import Tried, utilization
from rules.scope import Scope
from sluicegate.settings import default_settings

EVERY_MS = 2000
LASTS_MS = 8 * 3_600_000
WINDOW_S = 300


@dataclass(frozen=True)
class Remembered(History):
    """Be a history that needs no Prometheus: what was present is known, and what is asked for is counted."""

    was: dict[Labels, set[int]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def present(self, expression: str) -> dict[Labels, set[int]]:
        del expression
        instants = self.evaluations.instants
        self.asked.append(len(instants))
        found = {labels: seen.intersection(instants) for labels, seen in self.was.items()}
        return {labels: seen for labels, seen in found.items() if seen}


def spans(seed: int, among: tuple[int, ...]) -> set[int]:
    """Give stretches at random places that last for at least a quarter of the window, and as long in between."""
    chance = random.Random(seed)
    least, at = WINDOW_S * 1000 // 4, 0
    seen: set[int] = set()
    while at < LASTS_MS:
        begins = at + chance.randrange(least, LASTS_MS // 6)
        at = begins + chance.randrange(least, LASTS_MS // 6)
        seen.update(one for one in among if begins <= one < at)
    return seen


def history(was: dict[Labels, set[int]], gaps: Iterable[tuple[int, int]] = ()) -> Remembered:
    regular = Evaluations.regular(0, LASTS_MS, EVERY_MS)
    kept: tuple[Evaluation, ...] = tuple(
        one for one in regular.all if not any(begins <= one.at_ms < ends for begins, ends in gaps)
    )
    scope = Scope(default_settings())
    # Nothing is asked of a Prometheus here.
    return Remembered(None, scope, Inputs.RECORDS, Evaluations(kept, EVERY_MS), was)  # type: ignore[arg-type]


def tried(looks_back_s: float) -> Tried:
    base = utilization(Scope(default_settings()))
    return replace(base, expression=f"increase(x[{WINDOW_S}s]) > 5", looks_back_s=looks_back_s)


@pytest.mark.parametrize("seed", range(5))
def test_coarse_steps_find_the_same_as_every_evaluation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_MOST_SAMPLES", 1_000_000)
    regular = Evaluations.regular(0, LASTS_MS, EVERY_MS).instants
    was: dict[Labels, set[int]] = {
        (("class", "lint"),): spans(seed, regular),
        (("class", "plan"),): spans(seed + 100, regular),
    }
    told = history(was, gaps=[(600_000, 606_000), (7_200_000, 7_260_000)])
    whole = told.present("")
    told.asked.clear()

    assert run._present(told, tried(21_600)) == whole
    assert sum(told.asked) < len(told.evaluations.instants) / 4


def test_a_short_look_back_is_looked_at_whole() -> None:
    told = history({(): set()})
    run._present(told, tried(30))
    assert told.asked == [len(told.evaluations.instants)]


def test_what_reaches_the_last_evaluation_is_found_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_MOST_SAMPLES", 1_000_000)
    regular = Evaluations.regular(0, LASTS_MS, EVERY_MS).instants
    was: dict[Labels, set[int]] = {(): set(regular[-20:])}
    told = history(was)
    assert run._present(told, tried(21_600)) == was
