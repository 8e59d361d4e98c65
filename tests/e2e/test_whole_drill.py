"""The main job at its own length, by the first command of the guide to the first drill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guides import Guide
from tests.running_drill import Places, make


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_guides_first_command_ends_well(tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    code, output = make(places, Guide.named("first-drill").next("make drill  "))
    assert code == 0, output
    assert "verdict: provider-degradation (full) passed" in output
    assert places.left() == []
