"""The guide to a runbook of one's own: its files are sound, and its commands run and say what it shows."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
import yaml

from runbooks.lints import lint
from runbooks.reading import read_runbook
from sluicegate.__main__ import dispatch
from tests.guides import GUIDES, Guide, blocks
from tests.queues import OpenQueue, contract_of

COMMANDS = (
    "runbooks validate",
    "runbooks test",
    "runbooks show",
    "runbooks plan",
    "automation run ",
    "automation runs",
)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the guide's two files where it says, and go there."""
    runbook, settings = blocks((GUIDES / "write-a-runbook.md").read_text(encoding="utf-8"), "yaml")
    (tmp_path / "my-runbooks").mkdir()
    (tmp_path / "my-runbooks" / "provider-trouble.yaml").write_text(runbook, encoding="utf-8")
    (tmp_path / "sluicegate.yaml").write_text(settings, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_every_command_runs_and_says_what_is_shown(
    written: Path,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    OpenQueue(redis_url, contract_of()).close()
    with Guide.named("write-a-runbook") as guide:
        for beginning in COMMANDS:
            command = guide.next(f"sluicegate {beginning}")
            assert dispatch(shlex.split(command.line)[1:]) == 0, capsys.readouterr()
            said = " ".join(capsys.readouterr().out.split())
            assert command.shown
            assert [line for line in command.shown if line not in said] == [], f"{command.line}\n{said}"
            assert "s3cret" not in said


def test_what_the_guide_says_of_a_missing_rule_is_so(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written / "my-runbooks" / "provider-trouble.yaml"
    file.write_text(file.read_text().replace("      on_unknown: probe\n", ""), encoding="utf-8")
    assert dispatch(["runbooks", "validate", str(file)]) == 2
    assert "what follows when its outcome is lost" in capsys.readouterr().err


def test_the_file_of_the_guide_has_no_finding(written: Path) -> None:
    body = yaml.safe_load((written / "my-runbooks" / "provider-trouble.yaml").read_text(encoding="utf-8"))
    assert lint(read_runbook(body, "guide.yaml")) == ()
