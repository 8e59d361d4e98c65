"""The guide to a runbook of one's own: its files are sound, and its commands run and say what it shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from runbooks.lints import lint
from runbooks.reading import read_runbook
from sluicegate.__main__ import dispatch
from tests.queues import OpenQueue, contract_of

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def guide(repository: Path) -> list[tuple[str, str]]:
    """Return the guide's blocks: language and text."""
    return _FENCE.findall((repository / "docs/guides/write-a-runbook.md").read_text(encoding="utf-8"))


@pytest.fixture
def written(guide: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the guide's two files where it says, and go there."""
    runbook, settings = (text for language, text in guide if language == "yaml")
    (tmp_path / "my-runbooks").mkdir()
    (tmp_path / "my-runbooks" / "provider-trouble.yaml").write_text(runbook, encoding="utf-8")
    (tmp_path / "sluicegate.yaml").write_text(settings, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def typed(guide: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Give each command with the lines that it is shown to say."""
    found: list[tuple[str, list[str]]] = []
    for line in (line for language, text in guide if language == "console" for line in text.splitlines()):
        if line.startswith("$ "):
            found.append((line.removeprefix("$ sluicegate "), []))
        else:
            found[-1][1].append(line)
    return found


def test_every_command_runs_and_says_what_is_shown(
    guide: list[tuple[str, str]],
    written: Path,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    OpenQueue(redis_url, contract_of()).close()
    commands = typed(guide)
    assert len(commands) == 6
    for command, shown in commands:
        assert dispatch(shlex.split(command)) == 0, capsys.readouterr()
        said = " ".join(capsys.readouterr().out.split())
        assert shown
        assert [line for line in shown if line not in said] == [], f"{command}\n{said}"
        assert "s3cret" not in said


def test_what_the_guide_says_of_a_missing_rule_is_so(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written / "my-runbooks" / "provider-trouble.yaml"
    file.write_text(file.read_text().replace("      on_unknown: probe\n", ""), encoding="utf-8")
    assert dispatch(["runbooks", "validate", str(file)]) == 2
    assert "what follows when its outcome is lost" in capsys.readouterr().err


def test_the_file_of_the_guide_has_no_finding(written: Path) -> None:
    body = yaml.safe_load((written / "my-runbooks" / "provider-trouble.yaml").read_text(encoding="utf-8"))
    assert lint(read_runbook(body, "guide.yaml")) == ()
