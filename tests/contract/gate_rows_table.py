"""The gate's whole table, and the sample of it that every run of the tests takes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sluicegate.gate import GateState
from tests.contract.gate_rows_run import Pair
from tests.gate_events import Row, covering_rows

SEED = 20260
ROWS = 15_000


@dataclass(frozen=True)
class Table:
    """Hold every row of the gate's table; a row is named by its number, the same in every run."""

    rows: Sequence[Row]

    def pairs(self, numbers: Iterable[int]) -> Iterator[Pair]:
        return ((number, self.rows[number].before, self.rows[number].event) for number in numbers)

    @cached_property
    def sample(self) -> list[int]:
        """Choose rows: each kind of state with each event, each kind of change, and others by chance up to ROWS."""
        chance = random.Random(SEED)
        by_kind: dict[tuple[object, ...], int] = {}
        shuffled = list(range(len(self.rows)))
        chance.shuffle(shuffled)
        for number in shuffled:
            by_kind.setdefault((*state_kind(self.rows[number].before), self.rows[number].event), number)
        numbers = {id(row): number for number, row in enumerate(self.rows)}
        changes = (numbers[id(row)] for row in covering_rows(self.rows))
        chosen = dict.fromkeys((*by_kind.values(), *changes))
        for number in shuffled:
            if len(chosen) >= ROWS:
                break
            chosen.setdefault(number)
        return list(chosen)


def state_kind(state: GateState) -> tuple[object, ...]:
    """Give what of a state is met with every event."""
    pinned = state.pin is not None
    return (
        state.drain_state,
        state.stored,
        state.run,
        state.rolling_back,
        pinned,
        state.ramp,
        state.green,
        state.behind,
    )
