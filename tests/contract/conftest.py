"""What several of these tests ask for."""

from __future__ import annotations

import pytest

from tests.contract.gate_rows_table import Table
from tests.gate_events import Exploration


@pytest.fixture(scope="session")
def table() -> Table:
    """Return the gate's whole table: every reachable state with every event."""
    return Table(list(Exploration().walk()))
