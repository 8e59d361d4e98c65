"""`sluicegate gate` from files: commands on a real queue, what they say, and their exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.live import run_case

CASES = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_commands_do_what_their_case_says(
    case: Path,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_case(case, redis_url, tmp_path, monkeypatch, capsys)
