"""A short torture of runs on real parts keeps every promise; a long one is `make torture`, and among the slow tests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.running_drill import DRILL, REPOSITORY

pytestmark = [pytest.mark.e2e, pytest.mark.chaos]

SEED = "5"


def tortured(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a torture to its end; give exit code and output."""
    words = (*DRILL, "torture-runs", "--server", "redis", "--report-dir", str(folder), "--seed", SEED, *arguments)
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(400)
def test_ten_runs_under_kills_and_stops_keep_every_promise(tmp_path: Path) -> None:
    code, output = tortured(tmp_path, "--runs", "10", "--queues", "3", "--within", "150")
    assert code == 0, output
    (folder,) = tmp_path.glob("torture-runs-*")
    verdict = json.loads((folder / "verdict.json").read_text())
    assert all(finding["broken"] == 0 for finding in verdict["findings"]), output

    # The judge reads nothing but the records: with a later write by a replaced executor it says so.
    runs = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    owned = next(run for run in runs if any(entry["phase"] == "claimed" for entry in run["journal"]))
    owned["journal"].append({**owned["journal"][-1], "actor": "executor:elsewhere:1:00"})
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    again = subprocess.run(
        [*DRILL, "judge-runs", str(folder)], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False
    )
    assert again.returncode == 1, again.stdout
    assert "BROKEN owners" in again.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_200_runs_under_kills_and_stops_keep_every_promise(tmp_path: Path) -> None:
    code, output = tortured(tmp_path, "--runs", "200", "--queues", "10")
    print(output)
    assert code == 0, output


def test_a_folder_without_records_is_refused_with_a_hint(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DRILL, "judge-runs", str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert "Name the folder of a torture" in done.stderr
