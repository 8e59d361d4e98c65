"""The two longest tests in pieces, short enough to be run against many mutants; plain pytest does not collect it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from drill.server import QueueServer
from sluicegate import functions
from sluicegate.settings import default_settings
from tests.contract.gate_rows_run import Runner
from tests.contract.gate_rows_table import Table
from tests.gate_events import Exploration
from tests.machine.play import Length, play

ROW_PIECES = 12
SEEDS = range(1, 7)


@pytest.fixture(scope="session")
def table() -> Table:
    """Return the gate's whole table."""
    return Table(list(Exploration().walk()))


@pytest.fixture
def runner(redis_server: QueueServer) -> Iterator[Runner]:
    """Return what runs rows on a server."""
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        client.flushall()
        client.function_flush()
        yield Runner(client, default_settings().contract)


@pytest.mark.parametrize("piece", range(ROW_PIECES))
def test_some_rows_end_as_the_table_says(table: Table, runner: Runner, piece: int) -> None:
    assert next(runner.differences(table.pairs(table.sample[piece::ROW_PIECES])), None) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_short_machine_keeps_the_invariants(redis_server: QueueServer, seed: int) -> None:
    play(redis_server.url, functions.library(), Length(examples=3, seed=seed))
