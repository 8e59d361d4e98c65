"""Which tests may notice a mutant, and which of them first? Pure."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.mutation.mutants import Mutant

# Of the tests that reach a mutant, so many seconds' worth are run, going by what they took when they were looked at.
MOST_S = 5.0
# What is listed with a reason gets so many, and no last resort: it is known to survive.
LISTED_S = 0.5
_OVERHEAD_S = 0.1
_NEAR = 30
_FAR = 3
PIECES = "tests/mutation/pieces.py"


@dataclass(frozen=True)
class Reach:
    """Say of one test how long it takes and which marks it reaches."""

    test: str
    seconds: float
    marks: frozenset[int]
    # Where it asks for parts of the library by their names: how many calls away each function is. A test comes first
    # for what it names, and is run whatever time it takes.
    near: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass
class Chooser:
    """Put tests in the order in which they are likely to find a mutant soon, learning from those that were found."""

    reaches: Mapping[str, Reach]
    _by_mark: dict[int, list[Reach]] = field(default_factory=dict)
    _kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    _on_line: dict[tuple[str, str, str], dict[str, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for reach in self.reaches.values():
            for mark in reach.marks:
                self._by_mark.setdefault(mark, []).append(reach)

    def reaching(self, mutant: Mutant) -> list[Reach]:
        return self._by_mark.get(mutant.mark, [])

    def tests_for(self, mutant: Mutant, most_s: float = MOST_S, killer: str = "") -> list[Reach]:
        """Give the tests to run, best first, as many as fit in the time; at last the last resort.

        First of all the one that killed it before, and those that killed other changes of the same line.
        """
        before = [killer, *reversed(self._on_line.get(mutant.key[:3], {}))]
        reaching = {one.test: one for one in self.reaching(mutant)}
        first = [reaching[name] for name in dict.fromkeys(before) if name in reaching]
        others = [one for one in self._ranked(mutant, most_s) if one not in first]
        return first + others

    def _ranked(self, mutant: Mutant, most_s: float) -> list[Reach]:
        most = max((self._about(reach, mutant) for reach in self.reaching(mutant)), default=1.0)
        place = (mutant.file, mutant.function)
        ordered = sorted(
            self.reaching(mutant),
            key=lambda reach: (min(reach.near.get(place, _FAR), _FAR), -self._worth(reach, mutant, most)),
        )
        chosen: list[Reach] = []
        # Those that ask for a function near it take none of the others' time, and those that ask for it have no bound.
        spent = {True: 0.0, False: 0.0}
        for reach in ordered:
            asks_for_it = reach.near.get(place) == 0 and most_s > LISTED_S
            is_near = reach.near.get(place, _FAR) < _FAR and most_s > LISTED_S
            if PIECES in reach.test or (chosen and spent[is_near] + reach.seconds > most_s and not asks_for_it):
                continue
            chosen.append(reach)
            spent[is_near] += 0.0 if asks_for_it else reach.seconds
        return chosen + (self._last_resort(mutant) if most_s > LISTED_S else [])

    def _last_resort(self, mutant: Mutant) -> list[Reach]:
        """Give one piece of each long test, another one for each mutant: they are about everything, and slow."""
        pieces: dict[str, list[Reach]] = {}
        for reach in self.reaching(mutant):
            if PIECES in reach.test:
                pieces.setdefault(reach.test.partition("[")[0], []).append(reach)
        number = zlib.crc32(" ".join(mutant.key).encode())
        return [kind[number % len(kind)] for kind in pieces.values()]

    def learn(self, mutant: Mutant, test: str) -> None:
        self._kills[test, mutant.file] += 1
        self._kills[test, mutant.function] += 4
        self._kills[_module(test), mutant.file] += 1
        self._kills["", mutant.file] += 1
        self._on_line.setdefault(mutant.key[:3], {})[test] = None

    def _worth(self, reach: Reach, mutant: Mutant, most: float) -> float:
        """Give what a second of this test is worth: how much it reaches there that few others do, and what it found."""
        found = self._kills[reach.test, mutant.file] + self._kills[reach.test, mutant.function]
        # Tests of one module are about one part of the library: which one shows in what they found.
        share = self._kills[_module(reach.test), mutant.file] / max(1, self._kills["", mutant.file])
        about = self._about(reach, mutant) / most
        return (3 * about + 2 * share + 0.3 * math.sqrt(found)) / (reach.seconds + _OVERHEAD_S)

    def _about(self, reach: Reach, mutant: Mutant) -> float:
        """Give how much a test is about a place: near marks count, and more if few tests reach them.

        What a condition guards is marked next to it, so the tests that get there come first, and of those the ones that
        get to little else.
        """
        near = range(mutant.mark - _NEAR, mutant.mark + _NEAR + 1)
        return (
            1
            / math.sqrt(len(reach.marks))
            * sum(
                1 / (len(self._by_mark[mark]) * (3 + abs(mark - mutant.mark))) for mark in near if mark in reach.marks
            )
        )


def _module(test: str) -> str:
    return test.partition("::")[0]
