"""`runbooks plan` reads a real queue and writes nothing, as a user that could not write either."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
import yaml

from exporter.acl import acl_line
from runbooks.context import Context
from runbooks.library import builtin_names, load_builtin
from runbooks.plan import step_text
from sluicegate.__main__ import dispatch
from sluicegate.all_queues import NAME, AllQueues
from sluicegate.producer import Producer
from sluicegate.settings import DRILL_CLASSES, default_settings
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.small_server import Handler, served


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


def planned_json(name: str, reader: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert dispatch(["runbooks", "plan", name, "--redis-url", reader, "--json", *more]) == 0
    body: dict[str, Any] = json.loads(capsys.readouterr().out)
    return body


@pytest.mark.parametrize("name", builtin_names())
def test_every_shipped_runbook_is_planned_by_a_user_that_cannot_write(
    name: str, opened: str, reader: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = writes(opened)
    planned = planned_json(name, reader, capsys)
    runbook = load_builtin(name)
    assert [line["text"] for line in planned["lines"]] == [
        step_text(step, runbook, Context(default_settings())) for step in runbook.steps
    ]
    assert all(line["rollback"] for line in planned["lines"])
    assert planned["unseen"] == []
    assert writes(opened) == before


def test_the_plan_counts_what_the_drain_would_expire_and_names_what_forbids_a_run(
    opened: str, reader: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.connect(opened)
    Producer(store).submit_many([Submission(f"j{n}", "lint-fix", "{}") for n in range(3)])
    store.close()
    with redis.Redis.from_url(opened) as client:
        now_ms = int(client.time()[0]) * 1000
        client.zadd("queue:ready:lint-fix:-", {"j0": now_ms + 10_000, "j1": now_ms + 12_000})
        client.set("cooldown:drain-and-recover", now_ms + 60_000)

    planned = planned_json("drain-and-recover", reader, capsys)

    assert planned["expired_by_drain"] == {"lint-fix": 2}
    assert [obstacle["rule"] for obstacle in planned["why_not"]] == ["not_confirmed", "cooldown"]
    assert planned_json("reject-and-prepare", reader, capsys)["expired_by_drain"] is None


def test_the_plan_names_what_forbids_a_run_on_every_queue(
    opened: str, reader: str, capsys: pytest.CaptureFixture[str]
) -> None:
    everywhere = AllQueues.connect(opened, NAME)
    for queue in ("mill", "press"):
        everywhere.hold_place(queue, f"run-of-{queue}")
    before = writes(opened)

    planned = planned_json("drain-and-recover", reader, capsys)

    assert [obstacle["rule"] for obstacle in planned["why_not"]] == ["not_confirmed", "concurrent_runs"]
    assert "run-of-mill of queue mill" in planned["why_not"][1]["text"]
    assert writes(opened) == before
    everywhere.kill_switch(on=True, actor="ada", reason="maintenance")
    assert dispatch(["runbooks", "plan", "reconcile-unknown", "--redis-url", reader]) == 0
    assert "The kill switch of all queues is on (ada: maintenance): a run is refused." in capsys.readouterr().out
    everywhere.close()


def test_a_user_that_may_read_the_figures_alone_still_gets_a_plan(
    opened: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with redis.Redis.from_url(opened) as client:
        client.execute_command(*acl_line("figures", ("default",)).replace(">PASSWORD", ">look").split())
    parts = urlsplit(opened)
    planned = planned_json("drain-and-recover", f"redis://figures:look@{parts.hostname}:{parts.port}", capsys)
    assert planned["expired_by_drain"] is None
    assert planned["unseen"] == [
        "cooldown",
        "runs an hour",
        "the kill switch of all queues",
        "breaker",
        "runs at once",
    ]


def test_the_gates_that_ask_prometheus_are_asked_now(
    opened: str, reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Says(Handler):
        def respond(self) -> None:
            series = [{"metric": {}, "value": [1_700_000_000, "0.2"]}]
            self.answer(200, json.dumps({"status": "success", "data": {"result": series}}).encode())

    mine = yaml.safe_load(files("runbooks").joinpath("hold-recovery.yaml").read_text(encoding="utf-8"))
    mine["steps"][1]["wait_for"]["pass_if"].append({"promql": "error_share", "holds": "< 0.05"})
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "mine.yaml").write_text(yaml.safe_dump(mine), encoding="utf-8")
    settings = tmp_path / "s.yaml"

    def verdict(url: str | None) -> dict[str, Any]:
        body = {"contract": {"classes": DRILL_CLASSES}, "automation": {"prometheus_url": url}}
        settings.write_text(yaml.safe_dump(body), encoding="utf-8")
        more = ["--dir", str(tmp_path / "books"), "--settings", str(settings)]
        gate: list[dict[str, Any]] = planned_json("hold-recovery", reader, capsys, *more)["lines"][1]["gate"]
        return gate[-1]

    with served(Says) as address:
        asked = verdict(f"http://{address}")
    assert (asked["name"], asked["value"], asked["verdict"]) == ("error_share", 0.2, "fail")
    assert verdict(None)["why"] == "automation.prometheus_url is not set"
