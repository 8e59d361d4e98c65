"""Run each case file of this folder: its files, its command, then output, errors and exit code as it says.

Fingerprints of 16 hex digits read as DIGEST, so that a case stands when a runbook's words change. Where
the words are another part's, `stderr_holds` names what matters of them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from sluicegate.__main__ import dispatch

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_command_does_what_its_case_says(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = yaml.safe_load(case.read_text(encoding="utf-8"))
    for name, text in wanted.get("files", {}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    code = dispatch(wanted["command"].split())

    seen = capsys.readouterr()
    if "stderr_holds" in wanted:
        assert wanted["stderr_holds"] in seen.err
    else:
        assert _stable(seen.err) == wanted.get("stderr", "")
    assert _stable(seen.out) == wanted.get("stdout", "")
    assert code == wanted["exit"]
    for name, text in wanted.get("written", {}).items():
        assert text in (tmp_path / name).read_text(encoding="utf-8")


def _stable(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{16}\b", "DIGEST", text)
