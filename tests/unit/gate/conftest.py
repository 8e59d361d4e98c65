"""One exploration of the real rule serves every test of this folder."""

from __future__ import annotations

import pytest

from tests.unit.gate.view import Explored


@pytest.fixture(scope="session")
def explored() -> Explored:
    """Return every reachable state and every row of the gate."""
    return Explored.whole()
