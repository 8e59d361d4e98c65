"""What every test can ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["tests.servers", "tests.queues"]


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the folder that holds pyproject.toml."""
    return Path(__file__).resolve().parents[1]
