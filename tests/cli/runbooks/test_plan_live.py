"""`runbooks plan` reads a real queue and writes nothing, as a user that could not write either."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
import yaml

from sluicegate.__main__ import dispatch
from sluicegate.settings import DRILL_CLASSES, default_settings
from sluicegate.store import Store


@pytest.fixture
def opened(redis_url: str) -> str:
    """Return the address of a server with one open queue."""
    contract = default_settings().contract
    with_queue = Store.connect(redis_url)
    answer = with_queue.init_queue(contract.for_redis(), contract.digest(), "ada", "a test")
    with_queue.close()
    assert answer.answer == "moved"
    return redis_url


@pytest.fixture
def reader(opened: str) -> str:
    """Return the address under a user that may read and run read-only scripts, and nothing else."""
    with redis.Redis.from_url(opened) as client:
        rules = [
            "reset",
            "on",
            ">look",
            "~*",
            "+@read",
            "+@connection",
            "+eval_ro",
            "+evalsha_ro",
            "+time",
            "-@dangerous",
        ]
        client.execute_command("ACL", "SETUSER", "planner", *rules)
    parts = urlsplit(opened)
    return f"redis://planner:look@{parts.hostname}:{parts.port}{parts.path}"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def writes(url: str) -> int:
    """Count the changes the server has made to its data since it started; nothing is saved in between."""
    with redis.Redis.from_url(url) as client:
        return int(client.info("persistence")["rdb_changes_since_last_save"])


def test_a_plan_of_a_healthy_queue_would_not_start(
    opened: str, reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = writes(opened)
    file = tmp_path / "sluicegate.yaml"
    file.write_text(yaml.safe_dump({"contract": {"classes": DRILL_CLASSES}}), encoding="utf-8")

    code = dispatch(["runbooks", "plan", "drain-and-recover", "--settings", str(file), "--redis-url", reader, "--json"])

    planned = json.loads(capsys.readouterr().out)
    assert code == 0
    assert planned["would_start"] is False
    assert [obstacle["rule"] for obstacle in planned["why_not"]] == ["not_confirmed"]
    assert planned["settings_digest"] == default_settings().contract.digest()
    assert planned["notes"] == []
    assert len(planned["lines"]) == 8
    assert writes(opened) == before


def test_a_plan_without_a_settings_file_reports_no_drift(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("contract: {classes: {mend: {deadline_s: 60}}}", encoding="utf-8")
    named = ["--as", "ada", "--reason", "a test", "--redis-url", redis_url]
    assert dispatch(["queue", "init", "--settings", str(file), *named]) == 0
    capsys.readouterr()

    assert dispatch(["runbooks", "plan", "drain-and-recover", "--redis-url", redis_url]) == 0
    assert "No settings file was named" in (text := capsys.readouterr().out)
    assert "queue apply" not in text
    dispatch(["queue", "doctor", "--redis-url", redis_url])
    assert "no settings file was named" in (text := capsys.readouterr().out)
    assert "queue apply" not in text
    assert dispatch(["queue", "settings", "--redis-url", redis_url]) == 0
    assert "queue apply" not in capsys.readouterr().err


def test_the_planner_cannot_write(reader: str) -> None:
    with redis.Redis.from_url(reader) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.set("drain_state", "admit")


def test_a_plan_of_a_pinned_gate_names_the_pin(opened: str, reader: str, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.connect(opened)
    assert store.order("hold", "ada", "looking into it").answer == "moved"
    store.close()

    assert dispatch(["runbooks", "plan", "drain-and-recover", "--redis-url", reader]) == 0

    text = capsys.readouterr().out
    assert "Would an alert start it now? No." in text
    assert "pinned: The gate is pinned, operator (looking into it)" in text


def test_a_plan_of_an_empty_server_says_that_no_queue_was_opened(
    redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = writes(redis_url)

    assert dispatch(["runbooks", "plan", "rollback-and-audit", "--redis-url", redis_url]) == 0

    assert "uninitialised: Queue default was never opened" in capsys.readouterr().out
    assert writes(redis_url) == before
