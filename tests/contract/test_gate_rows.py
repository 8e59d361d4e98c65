"""Do the functions in Redis move the gate exactly as `transition` says, on Redis and on Valkey?

`make test` runs a sample of a fixed seed; `make gate-rows` runs every row (GATE_ROWS=all).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
import redis

from drill.server import QueueServer
from sluicegate import keys
from sluicegate.gate import DrainState, GateState, Runbook, Stored
from sluicegate.gate_events import Answer, Event, Order, Person
from sluicegate.keys import Keys
from sluicegate.settings import default_settings
from sluicegate.transition import Transition, transition
from tests.contract.gate_rows_run import Runner
from tests.contract.gate_rows_storage import RUN_ID, Details, Storage
from tests.contract.gate_rows_table import ROWS, Table, state_kind
from tests.gate_events import Rule, all_events
from tests.queues import OpenQueue

SHOWN = 20
EVERY_ROW = os.environ.get("GATE_ROWS") == "all"


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
    assert {row.answer for row in rows} == {row.answer for row in table.rows}


def test_states_are_written_in_the_shape_that_the_library_stores(runner: Runner) -> None:
    queue = OpenQueue(url_of(runner), runner.contract)
    opening = {"runbook": "drain-and-recover", "trigger": "person", "run": RUN_ID, "actor": "ada", "reason": "a test"}
    queue.store.open_run({**opening, "confirmed": True, "digest": "", "episode": ""})
    stored = {name: shape(runner, name) for name in (keys.GATE, keys.LOCK_RUN, Keys().run(RUN_ID), keys.RUNS_LIVE)}
    runner.client.flushdb()

    with runner.client.pipeline(transaction=False) as pipe:
        live = GateState(Stored.OK, run=Runbook.DRAIN_AND_RECOVER)
        Storage(runner.contract).write(pipe, Keys(), live, Details(), now_ms=1_700_000_000_000)
        pipe.execute()

    assert {name: shape(runner, name) for name in stored} == stored
    queue.close()


def shape(runner: Runner, name: str) -> tuple[str, tuple[str, ...]]:
    """Give a key's type and, of a hash, its fields."""
    kind = str(runner.client.type(name))
    fields = runner.client.hkeys(name) if kind == "hash" else []
    return kind, tuple(sorted(str(field) for field in fields))


def url_of(runner: Runner) -> str:
    plain = runner.client.connection_pool.connection_kwargs
    return f"redis://{plain['host']}:{plain['port']}/0"


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


@pytest.mark.slow
@pytest.mark.parametrize("rule", [without_pins, without_refusals, with_hold_opening])
def test_the_rows_tell_another_rule_apart(table: Table, runner: Runner, rule: Rule) -> None:
    numbers = table.sample[:500]

    assert not list(runner.differences(table.pairs(numbers)))
    assert list(replace(runner, rule=rule).differences(table.pairs(numbers)))
