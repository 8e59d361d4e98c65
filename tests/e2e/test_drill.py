"""Whole fast drills on real parts: a crash in mid-drain, a path that never recovers, a restart, a double delivery.

The main job is in test_recorded_drill.py, for what its Prometheus recorded is looked at as well.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.running_drill import Places, run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
AT_MOST_S = 60


def passed(tmp_path: Path, scenario: str, *arguments: str) -> Path:
    """Run a scenario, check that it passed, left nothing behind and wrote its report; return the report's folder."""
    places = Places.below(tmp_path)
    code, output = run(places, "--scenario", scenario, *arguments)
    assert code == 0, output
    assert f"verdict: {scenario} (fast) passed" in output
    assert places.left() == []
    report = places.reports / "latest"
    samples = json.loads((report / "figures.json").read_text())["samples"]
    assert (samples[-1]["at_ms"] - samples[0]["at_ms"]) / 1000 <= AT_MOST_S
    return report


def test_a_run_whose_executor_is_killed_in_mid_drain_is_resumed_and_finishes(tmp_path: Path) -> None:
    report = passed(tmp_path, "executor-crash")
    records = [json.loads(line) for line in (report / "audit.jsonl").read_text().splitlines()]
    owners = [record["actor"] for record in records if record["log"] == "journal" and record["phase"] == "claimed"]
    assert len(set(owners)) == 2


def test_a_path_that_never_recovers_ends_closed_and_pinned(tmp_path: Path) -> None:
    report = passed(tmp_path, "never-recovers")
    last = json.loads((report / "figures.json").read_text())["samples"][-1]
    assert (last["drain_state"], last["rollback_reason"]) == ("drain", "canary_failed")


def test_a_server_that_is_killed_with_every_job_pending_comes_back_with_all_of_them(tmp_path: Path) -> None:
    report = passed(tmp_path, "queue-restart", "--server", "valkey")
    drill = json.loads((report / "figures.json").read_text())["drill"]
    assert drill["jobs"] == {"count": 20, "job_class": "test-patch"}
    page = (report / "index.html").read_text()
    assert "A queue of 20 test-patch jobs" in page
    assert "Prometheus" not in page, "what did not run is not named"


def test_what_is_delivered_twice_is_one_job_and_one_run(tmp_path: Path) -> None:
    report = passed(tmp_path, "delivered-twice", "--server", "redis")
    records = [json.loads(line) for line in (report / "audit.jsonl").read_text().splitlines()]
    runs = {record["run"] for record in records if record["log"] == "journal"}
    assert len(runs) == 1
    posts = [record["text"] for record in records if record["log"] == "drill" and record["kind"] == "posted"]
    assert len(posts) == 2
    assert all(run in post for run in runs for post in posts)
