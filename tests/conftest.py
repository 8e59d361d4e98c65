"""What every test can ask for."""

from __future__ import annotations

pytest_plugins = ["tests.servers"]
