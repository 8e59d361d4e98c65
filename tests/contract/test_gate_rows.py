"""Do the functions in Redis move the gate exactly as `transition` says, on Redis and on Valkey?

`make test` runs a sample of a fixed seed; `make gate-rows` runs every row (GATE_ROWS=all).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
import redis

from drill.server import QueueServer
from sluicegate.gate import DrainState, GateState
from sluicegate.settings import default_settings
from sluicegate.transition import Answer, Event, Order, Person, Transition, transition
from tests.contract.gate_rows_run import Pair, Runner
from tests.gate_events import Exploration, Row, Rule, all_events, covering_rows

SEED = 20260
ROWS = 15_000
SHOWN = 20
EVERY_ROW = os.environ.get("GATE_ROWS") == "all"


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


@pytest.fixture(scope="session")
def table() -> Table:
    """Return the whole table: every reachable state with every event."""
    return Table(list(Exploration().walk()))


@pytest.fixture
def runner(server: QueueServer) -> Iterator[Runner]:
    """Return what runs rows on an empty server."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        yield Runner(client, default_settings().contract)


def fail_on(differences: list[str]) -> None:
    if differences:
        shown = "\n".join(differences[:SHOWN])
        pytest.fail(f"{len(differences)} rows differ, of which the first:\n{shown}", pytrace=False)


def test_the_sample_meets_every_kind_of_state_with_every_event_and_every_answer(table: Table) -> None:
    rows = [table.rows[number] for number in table.sample]

    assert len(rows) >= ROWS
    kinds = {state_kind(row.before) for row in table.rows}
    assert {(*state_kind(row.before), row.event) for row in rows} == {
        (*kind, event) for kind in kinds for event in all_events()
    }
    assert {row.answer for row in rows} == set(Answer)


@pytest.mark.timeout(3600 if EVERY_ROW else 300)
def test_rows_end_as_the_table_says(table: Table, runner: Runner) -> None:
    numbers = range(len(table.rows)) if EVERY_ROW else table.sample
    fail_on(list(runner.differences(table.pairs(numbers))))


def without_pins(state: GateState, event: Event) -> Transition:
    """Break the rule: nothing is ever pinned."""
    result = transition(state, event)
    return replace(result, state=replace(result.state, pin=None))


def without_refusals(state: GateState, event: Event) -> Transition:
    """Break the rule: every event is said to have moved the gate."""
    return replace(transition(state, event), answer=Answer.MOVED)


def with_hold_opening(state: GateState, event: Event) -> Transition:
    """Break the rule: a person's hold opens the gate."""
    result = transition(state, event)
    opens = isinstance(event, Person) and event.order is Order.HOLD and result.answer is Answer.MOVED
    return replace(result, state=replace(result.state, drain_state=DrainState.ADMIT)) if opens else result


@pytest.mark.parametrize("rule", [without_pins, without_refusals, with_hold_opening])
def test_the_rows_tell_another_rule_apart(table: Table, runner: Runner, rule: Rule) -> None:
    numbers = table.sample[:500]

    assert not list(runner.differences(table.pairs(numbers)))
    assert list(replace(runner, rule=rule).differences(table.pairs(numbers)))
