"""The campaign of mutants itself: a dozen that tests are known to find, and one that nothing can notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = "tests/contract/test_leases.py"
FOUND = "lease.lua | commands.renew | if job and job.state == 'running'"
# Taking fields away that are not there changes nothing.
EQUIVALENT = (
    "lease.lua | intended | if job[6] then redis.call('HDEL', key, 'confirmed', 'reference') end | if always true"
)


@pytest.mark.slow
def test_a_campaign_finds_what_tests_notice_and_names_what_none_can(repository: Path, tmp_path: Path) -> None:
    asked = ["--matching", FOUND, "--matching", EQUIVALENT, "--no-pieces", "--results", str(tmp_path), "--name", "it"]
    command = [sys.executable, "-m", "tests.mutation", *asked, TESTS]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=100, check=False)

    assert (tmp_path / "it.json").exists(), ran.stdout + ran.stderr
    outcomes = json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))["mutants"]
    survived = [row for row in outcomes if row["fate"] == "survived"]
    killed = [row for row in outcomes if row["fate"] == "killed"]
    assert [" | ".join((row["file"], row["function"], row["text"], row["mutation"])) for row in survived] == [
        EQUIVALENT
    ]
    assert len(killed) == len(outcomes) - 1 >= 6
    assert all(row["by"].startswith(TESTS) for row in killed)
    assert ran.returncode == 1, "fewer than 95 % are killed"
