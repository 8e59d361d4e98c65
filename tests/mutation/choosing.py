"""Which tests may notice a mutant, and which of them first? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.mutation.mutants import Mutant

# Of the tests that reach a mutant, so many seconds' worth are run, going by what they took when they were looked at.
MOST_S = 30.0
_OVERHEAD_S = 0.02


@dataclass(frozen=True)
class Reach:
    """Say of one test how long it takes and which marks it reaches."""

    test: str
    seconds: float
    marks: frozenset[int]


@dataclass
class Chooser:
    """Put tests in the order in which they are likely to find a mutant soon, learning from those that were found."""

    reaches: Mapping[str, Reach]
    _by_mark: dict[int, list[Reach]] = field(default_factory=dict)
    _kills: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for reach in self.reaches.values():
            for mark in reach.marks:
                self._by_mark.setdefault(mark, []).append(reach)

    def reaching(self, mutant: Mutant) -> list[Reach]:
        return self._by_mark.get(mutant.mark, [])

    def tests_for(self, mutant: Mutant, most_s: float = MOST_S) -> list[Reach]:
        """Give the tests to run, best first, as many as fit in the time; always one if any reaches it."""
        ordered = sorted(self.reaching(mutant), key=lambda reach: -self._worth(reach, mutant))
        chosen: list[Reach] = []
        spent = 0.0
        for reach in ordered:
            if chosen and spent + reach.seconds > most_s:
                continue
            chosen.append(reach)
            spent += reach.seconds + _OVERHEAD_S
        return chosen

    def learn(self, mutant: Mutant, test: str) -> None:
        self._kills[test, mutant.file] += 1
        self._kills[test, mutant.function] += 4

    def _worth(self, reach: Reach, mutant: Mutant) -> float:
        """Give what a second of this test is worth: what it found nearby, and how little else it is about."""
        found = self._kills[reach.test, mutant.file] + self._kills[reach.test, mutant.function]
        return (found + 300 / (len(reach.marks) + 30)) / (reach.seconds + _OVERHEAD_S)


def unreached(mutants: Iterable[Mutant], chooser: Chooser) -> list[Mutant]:
    """Give the mutants that no test reaches."""
    return [mutant for mutant in mutants if not chooser.reaching(mutant)]
