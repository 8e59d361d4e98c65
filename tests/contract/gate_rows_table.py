"""The gate's whole table, and the sample of it that every run of the tests takes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sluicegate.gate import GateState, RawEdit
from tests.contract.gate_rows_run import Pair
from tests.gate_events import Row, covering_rows

SEED = 20260
ROWS = 9_000


@dataclass(frozen=True)
class Table:
    """Hold every row of the gate's table; a row is named by its number, the same in every run."""

    rows: Sequence[Row]

    def pairs(self, numbers: Iterable[int]) -> Iterator[Pair]:
        return ((number, self.rows[number].before, self.rows[number].event) for number in numbers)

    @cached_property
    def sample(self) -> list[int]:
        """Choose rows: each kind of state with each event, each kind of change, and others by chance up to ROWS.

        Of each kind a row without a raw edit is taken where there is one: adoption would answer before the event does.
        """
        shuffled = list(range(len(self.rows)))
        random.Random(SEED).shuffle(shuffled)
        by_kind: dict[tuple[object, ...], int] = {}
        for number in sorted(shuffled, key=lambda number: is_edited(self.rows[number].before)):
            row = self.rows[number]
            by_kind.setdefault((*state_kind(row.before), row.event), number)
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
    stands = (state.drain_state, state.stored, state.behind, state.green, state.ramp, state.run, state.rolling_back)
    return (*stands, state.pin is not None, state.rollback_reason is not None, state.duplicates)


def is_edited(state: GateState) -> bool:
    """Say whether somebody's raw edit waits for its adoption."""
    return state.raw is not RawEdit.NONE or state.raw_admission is not RawEdit.NONE
