"""Every scenario on every server, and two drills at once: too long for `make test`, run by `make slow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from drill.scenarios import SCENARIOS
from drill.server import ServerKind
from tests.running_drill import Places, run, start

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.mark.parametrize("server", [ServerKind.REDIS, ServerKind.VALKEY], ids=str)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_ends_with_its_own_verdict(scenario: str, server: ServerKind, tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    code, output = run(places, "--scenario", scenario, "--server", server.value)
    assert code == 0, output
    assert f"runs on: {server.value.capitalize()} " in output
    assert places.left() == []


def test_two_drills_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    drills = [start(places, "--scenario", "provider-degradation") for _ in range(2)]
    outputs = [drill.communicate()[0] for drill in drills]
    for drill, output in zip(drills, outputs, strict=True):
        assert drill.returncode == 0, output
    assert places.left() == []
    assert len(list(places.reports.glob("*/index.html"))) == 3  # two and `latest`


def test_keep_leaves_the_data_folder_and_no_process(tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    code, output = run(places, "--scenario", "controller-hung", "--keep")
    assert code == 0, output
    (kept,) = places.left()
    assert f"kept: {places.temporary / kept}" in output
    assert (places.temporary / kept / "logs" / "automation.log").read_text()


def test_the_load_goes_on_for_the_duration_that_was_asked_for(tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    code, output = run(places, "--scenario", "controller-hung", "--duration", "20s", "--rate", "6/s")
    assert code == 0, output
    answered = next(line for line in output.splitlines() if "every submission is answered" in line)
    assert sum(int(word) for word in answered.replace(",", " ").split() if word.isdigit()) >= 6 * 20


def test_a_phase_that_misses_its_bound_fails_the_drill_with_what_was_seen(tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    # A job a second is no load for a slow provider: the queue does not age, so nothing is ever refused.
    code, output = run(places, "--scenario", "provider-degradation", "--rate", "1/s")
    assert code == 1, output
    missed = next(line for line in output.splitlines() if line.startswith("FAILED  phases:"))
    assert "`slow` waited" in missed
    assert "for: the gate moves to reject_new (admission_threshold); seen: state=admit" in missed
    assert "profile fast: failed" in (places.reports / "latest" / "index.html").read_text()
    assert places.left() == []
