"""Run the case files of a folder against a real server: each is a list of commands on a queue, with what they say.

A case may open the queue first (`opened: false` leaves the server empty) and may set raw keys by hand (`set`). What
differs from run to run reads as a word: job ids JOBID, digests DIGEST, checksums SHA256, epochs EPOCH, instants
INSTANT, ports PORT.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from sluicegate.__main__ import dispatch
from sluicegate.settings import default_settings
from sluicegate.store import Store

_VOLATILE = (
    (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "JOBID"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", "INSTANT"),
    (r"\b1\d{15}\b", "EPOCH"),
    (r"\b[0-9a-f]{64}\b", "SHA256"),
    (r"\b[0-9a-f]{16}\b", "DIGEST"),
    (r"\b1\d{12}\b", "INSTANT"),
    (r"127\.0\.0\.1:\d{2,5}\b", "127.0.0.1:PORT"),
    (r"\(\d+ s\)", "(N s)"),
    (r"\b\d+\.\d s\b", "N s"),
)


def open_default_queue(url: str) -> None:
    """Open the queue `default` with the drill's contract, by ada."""
    contract = default_settings().contract
    store = Store.connect(url)
    assert store.init_queue(contract.for_redis(), contract.digest(), "ada", "a test").answer == "moved"
    store.close()


def run_case(
    case: Path, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Carry out one case in an empty folder; fails where a command says or does anything else."""
    wanted = yaml.safe_load(case.read_text(encoding="utf-8"))
    for name, text in wanted.get("files", {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("REDIS_URL", wanted.get("redis_url", url))
    monkeypatch.setenv("COLUMNS", "200")
    if wanted.get("opened", True):
        open_default_queue(url)
    for step in wanted["steps"]:
        _run_step(step, url, capsys)


def _run_step(step: dict[str, Any], url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with redis.Redis.from_url(url) as client:
        for key, value in step.get("set", {}).items():
            client.set(key, value)
    code = dispatch(shlex.split(step["run"]))
    seen = capsys.readouterr()
    said = (code, _stable(seen.out), _stable(seen.err))
    assert said == (step.get("exit", 0), step.get("out", ""), step.get("err", "")), step["run"]


def _stable(text: str) -> str:
    for pattern, word in _VOLATILE:
        text = re.sub(pattern, word, text)
    return text
