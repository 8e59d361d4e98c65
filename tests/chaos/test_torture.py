"""A short torture on real parts keeps every promise; a long one is `make torture-queue`, and among the slow tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running_drill import DRILL, REPOSITORY, descendants, eventually, living, read_until

pytestmark = [pytest.mark.e2e, pytest.mark.chaos]

SEED = "20"


def tortured(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a torture to its end; give exit code and output."""
    words = (*DRILL, "torture", "--server", "redis", "--report-dir", str(folder), "--seed", SEED, *arguments)
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def verdict_in(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("torture-*/verdict.json")
    verdict: dict[str, Any] = json.loads(path.read_text())
    return verdict


def of(verdict: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [finding for finding in verdict["findings"] if finding["name"] == name]
    return dict(found)


@pytest.mark.timeout(180)
def test_300_jobs_under_kills_keep_every_promise_and_the_logs_can_be_judged_again(tmp_path: Path) -> None:
    code, output = tortured(tmp_path, "--jobs", "300", "--appendfsync", "always")
    assert code == 0, output
    verdict = verdict_in(tmp_path)
    for name in ("twice_keyed", "twice_unsafe", "lost", "ends", "same_while_live"):
        assert (of(verdict, name)["verdict"], of(verdict, name)["broken"]) == ("kept", 0), output
        assert of(verdict, name)["looked_at"] > 0
    assert verdict["counts"]["deeds"]["kill queue-server"] == 2

    # The checker reads nothing but the logs: with one more effect in them it says so.
    (folder,) = tmp_path.glob("torture-*")
    log = folder / "provider.jsonl"
    keyed = next(line for line in log.read_text().splitlines() if '"class":"test-patch"' in line)
    log.write_text(log.read_text() + keyed + "\n")
    again = subprocess.run(
        [*DRILL, "judge", str(folder)], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False
    )
    assert again.returncode == 1, again.stdout
    assert "BROKEN twice_keyed" in again.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_300_jobs_with_everysec_report_their_loss_and_open_no_gate(tmp_path: Path) -> None:
    code, output = tortured(tmp_path, "--jobs", "300", "--appendfsync", "everysec")
    assert code == 0, output
    verdict = verdict_in(tmp_path)
    assert of(verdict, "stays_shut")["verdict"] == "kept", output
    assert of(verdict, "twice_keyed")["verdict"] == "kept"
    assert of(verdict, "lost")["verdict"] in ("lost", "none lost")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
def test_10_000_jobs_under_kills_keep_every_promise(appendfsync: str, tmp_path: Path) -> None:
    code, output = tortured(tmp_path, "--jobs", "10000", "--appendfsync", appendfsync)
    print(output)
    assert code == 0, output


@pytest.mark.timeout(120)
def test_a_torture_that_is_interrupted_leaves_no_process_and_no_verdict(tmp_path: Path) -> None:
    words = (sys.executable, "-m", "sluicegate", "drill", "torture", "--jobs", "300", "--report-dir", str(tmp_path))
    torture = subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        read_until(torture, "torture: 300 jobs")
        assert eventually(lambda: len(descendants(torture.pid)) >= 6, 60)
        processes = descendants(torture.pid)
        torture.send_signal(signal.SIGINT)
        output, _ = torture.communicate(timeout=40)
        assert torture.returncode == 130, output
        assert "interrupted by SIGINT" in output
        assert living(processes) == []
        assert list(tmp_path.glob("torture-*/verdict.json")) == []
    finally:
        if torture.poll() is None:
            torture.kill()
            torture.wait()


def test_a_folder_without_a_run_is_refused_with_a_hint(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DRILL, "judge", str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert "Name the folder of a torture" in done.stderr
