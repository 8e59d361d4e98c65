"""`sluicegate drill` on the command line: what it lists, what it refuses, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drill.folder import KEPT_PREFIX, PREFIX, create_folder
from drill.scenarios import SCENARIOS
from drill.topology import OVERRIDING
from sluicegate import settings

REPOSITORY = Path(__file__).parents[3]


def drill(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sluicegate", "drill", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_list_names_every_scenario_with_its_line() -> None:
    result = drill("--list")
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(SCENARIOS)
    assert all(scenario.summary in result.stdout for scenario in SCENARIOS.values())


BELOW_A_FILE = f"{__file__}/report"


@pytest.mark.parametrize(
    ("arguments", "sentence", "hint"),
    [
        (("--scenario", "nope"), "There is no scenario `nope`.", "`sluicegate drill --list` lists the 14 there are."),
        (("--profile", "quick"), "--profile 'quick' is not known.", "Choose one of full, fast."),
        (("--server", "mysql"), "--server 'mysql' is not known.", "Choose one of redis, valkey, auto."),
        (("--rate", "12"), "--rate '12' is not a rate above 0 and at most 200/s.", "Write a count and a unit"),
        (("--mix", "x:1"), "--mix 'x:1' can't be used: 'x' is not a declared class.", "Write for example --mix"),
        (("--duration", "soon"), "--duration 'soon' can't be used: it is not a duration", "Write for example"),
        (("--report-dir", BELOW_A_FILE), f"The report can't be written to {BELOW_A_FILE}", "--report-dir"),
        (
            ("--scenario", "rate-limited", "--rate", "3/s"),
            "--rate '3/s' can't be used with rate-limited: it brings its own 20 test-patch jobs.",
            "Leave --rate out.",
        ),
        (
            ("--scenario", "slow-start", "--duration", "3m"),
            "--duration '3m' can't be used with slow-start: it brings its own 20 test-patch jobs.",
            "Leave --duration out.",
        ),
        (
            ("--scenario", "queue-restart", "--mix", "lint-fix:1"),
            "--mix 'lint-fix:1' can't be used with queue-restart: it brings its own 20 test-patch jobs.",
            "Leave --mix out.",
        ),
        (("--seed", "x"), "Invalid value for '--seed'", "`sluicegate drill --help`"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_gets_a_sentence_a_hint_and_exit_code_2(
    arguments: tuple[str, ...], sentence: str, hint: str, tmp_path: Path
) -> None:
    result = drill(*arguments, TMPDIR=str(tmp_path))
    assert result.returncode == 2
    assert result.stderr.startswith(sentence)
    assert hint in result.stderr.splitlines()[-1]
    assert len(result.stderr.splitlines()) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("there", "missing", "package"),
    [
        ((), "`redis-server` is not on the PATH", "redis-server"),
        (("redis-server",), "Prometheus is missing", "prometheus"),
        (("redis-server", "prometheus"), "Alertmanager is missing", "prometheus-alertmanager"),
    ],
    ids=["server", "prometheus", "alertmanager"],
)
def test_a_missing_program_is_named_with_its_package_before_anything_starts(
    there: tuple[str, ...], missing: str, package: str, tmp_path: Path
) -> None:
    path, temporary = tmp_path / "bin", tmp_path / "tmp"
    path.mkdir()
    temporary.mkdir()
    for name in there:
        (path / name).write_text("#!/bin/sh\necho 'Redis server v=7.0.15'\n")
        (path / name).chmod(0o755)
    # `sh` and `echo` of the stand-ins are found by their interpreter's own default path.
    result = drill("--server", "redis", PATH=str(path), TMPDIR=str(temporary))
    assert result.returncode == 2
    assert missing in result.stderr
    assert f"apt-get install --no-install-recommends {package}" in result.stderr
    assert list(temporary.iterdir()) == []


def test_clean_removes_what_killed_and_kept_drills_left_but_no_living_one(tmp_path: Path) -> None:
    dead = tmp_path / f"{PREFIX}999999999-1-abcd"
    kept = tmp_path / f"{KEPT_PREFIX}1-1-abcd"
    for folder in (dead, kept):
        folder.mkdir()
    living = create_folder(tmp_path)
    strangers = tmp_path / "sluicegate-notes"
    strangers.mkdir()
    result = drill("--clean", TMPDIR=str(tmp_path))
    assert result.returncode == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {living.name, strangers.name}
    assert "2 folders of drills removed" in result.stdout


def test_every_name_of_the_environment_that_beats_a_settings_file_is_blanked_for_the_parts() -> None:
    assert set(settings.ENVIRONMENT.values()) <= set(OVERRIDING)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [(("--list",), 0), (("--profile", "fast", "--scenario", "queue-restart"), 2)],
    ids=["list", "a drill"],
)
def test_a_reader_that_goes_away_ends_it_quietly_and_leaves_nothing(
    arguments: tuple[str, ...], lines: int, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sluicegate", "drill", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        read = [process.stdout.readline() for _ in range(lines)]
        process.stdout.close()
        complained = process.stderr.read()
        assert process.wait(60) == 141
    finally:
        process.kill()
        process.stderr.close()
    assert all(line.startswith("starting: ") for line in read)
    assert complained == ""
    assert list(tmp_path.iterdir()) == []
