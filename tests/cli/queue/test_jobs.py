"""`sluicegate queue` on jobs in every state: show, list, reconcile, settings."""

from __future__ import annotations

import json
import sys

import pytest

from sluicegate.__main__ import dispatch
from sluicegate.job import CallKind, Outcome
from tests.queues import OpenQueue, OpenQueueFunction, contract_of


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, redis_url: str) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("COLUMNS", "200")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = dispatch(words)
    return code, capsys.readouterr().out


def test_show_gives_the_record_the_decision_and_the_ledger(
    queue: OpenQueue, capsys: pytest.CaptureFixture[str]
) -> None:
    job = queue.started(job_id="j1", payload='{"path":"a.py"}')
    code, text = said(capsys, "queue", "show", "j1")
    lines = text.splitlines()
    assert code == 0
    assert lines[:2] == ["job: j1", "state: running"]
    assert {"class: lint-fix", "key: j1", "attempt: 1", 'payload: {"path":"a.py"}', "worker: w1"} < set(lines)
    assert lines[-2].startswith("decision: accepted=1 ")
    assert f"fence={job.fence}" in lines[-1]
    code, text = said(capsys, "queue", "show", "j1", "--json")
    assert (code, json.loads(text)["job"]["state"]) == (0, "running")


def test_unknown_and_blocked_are_listed_and_settled_by_name(
    open_queue: OpenQueueFunction, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = open_queue(retry_budget=1)
    unknown = queue.started("send-mail", job_id="j1")
    queue.settle(unknown, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    blocked = queue.started(job_id="j2")
    queue.settle(blocked, Outcome.RETRY, kind=CallKind.STATUS_5XX)
    assert said(capsys, "queue", "unknown") == (0, "j1\n")
    assert said(capsys, "queue", "blocked") == (0, "j2\n")
    by_name = ("--as", "ada", "--reason", "asked the provider")
    assert said(capsys, "queue", "reconcile", "j1", "--outcome", "succeeded", *by_name) == (
        0,
        "Job j1 is succeeded now.\n",
    )
    assert said(capsys, "queue", "reconcile", "j2", "--outcome", "retry", *by_name) == (0, "Job j2 is ready now.\n")
    assert [entry["actor"] for entry in queue.log("reconcile")] == ["ada", "ada"]
    assert dispatch(["queue", "reconcile", "j2", "--outcome", "failed", *by_name]) == 1
    assert "Job j2 is ready: only an unknown job" in capsys.readouterr().err


def test_stats_count_each_state_apart(queue: OpenQueue, capsys: pytest.CaptureFixture[str]) -> None:
    queue.settle(queue.started("send-mail"), Outcome.UNKNOWN)
    queue.settle(queue.started(), Outcome.RETRY, delay_ms=5000)
    queue.started()
    queue.accepted()
    _, text = said(capsys, "queue", "stats", "--json")
    figures = json.loads(text)
    assert {state: figures["jobs"][state] for state in ("ready", "delayed", "running", "unknown", "blocked")} == {
        "ready": 1,
        "delayed": 1,
        "running": 1,
        "unknown": 1,
        "blocked": 0,
    }
    assert figures["classes"]["send-mail"]["unknown"] == 1


def test_settings_show_what_is_in_force_and_what_is_only_in_the_file(
    open_queue: OpenQueueFunction, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = open_queue(max_running=9)
    code, text = said(capsys, "queue", "settings", "--json")
    rows = {row["name"]: row for row in json.loads(text)}
    assert code == 0
    running = rows["contract.max_running"]
    assert (running["default"], running["bound"], running["here"], running["in_force"]) == ("6", "≥ 1", "6", "9")
    assert rows["contract.timings.margin_s"]["in_force"] == "0.4"
    assert rows["contract.classes.lint-fix.deadline_s"]["in_force"] == "12"
    assert (rows["worker.sweep_ms"]["here"], rows["worker.sweep_ms"]["in_force"]) == ("250", "250")
    changed = contract_of(max_running=3)
    queue.store.apply_settings(changed.for_redis(), changed.digest(), "ada", "test")
    _, text = said(capsys, "queue", "settings", "--json")
    assert {row["name"]: row["in_force"] for row in json.loads(text)}["contract.max_running"] == "3"


def test_settings_say_where_no_contract_is_in_force(redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["queue", "settings"]) == 0
    seen = capsys.readouterr()
    assert "No contract is in force: queue default is not open." in seen.err
    assert "contract.lease_ms" in seen.out
    assert dispatch(["queue", "settings", "--redis-url", "redis://127.0.0.1:1/0"]) == 0
    assert "does not answer" in capsys.readouterr().err


def test_retry_and_fail_settle_by_name_and_asking_settles_by_the_ledger(
    queue: OpenQueue, capsys: pytest.CaptureFixture[str]
) -> None:
    for job_id in ("j1", "j2", "j3", "j4"):
        queue.settle(queue.started("send-mail", job_id=job_id), Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.client.hset("job:j3", "confirmed", "1")
    by_name = ("--as", "ada", "--reason", "asked the provider")
    assert said(capsys, "queue", "retry", "j1", *by_name) == (0, "Job j1 is ready now.\n")
    assert said(capsys, "queue", "fail", "j2", *by_name) == (0, "Job j2 is failed now.\n")
    assert said(capsys, "queue", "reconcile", "j3", *by_name) == (0, "Job j3 is succeeded now.\n")
    assert [(entry["actor"], entry["outcome"]) for entry in queue.log("reconcile")] == [
        ("ada", "retry"),
        ("ada", "failed"),
        ("ledger", "succeeded"),
    ]
    assert dispatch(["queue", "reconcile", "j4", *by_name]) == 1
    assert "Nobody can tell what became of job j4" in capsys.readouterr().err
    assert queue.state("j4") == "unknown"
    assert dispatch(["queue", "retry", "j2", *by_name]) == 1
    assert "Job j2 is failed: only an unknown job" in capsys.readouterr().err


@pytest.mark.parametrize("contract", ["{", "[]", "{}", '{"thresholds": {}, "timings": {}, "classes": {"a": 1}}'])
def test_settings_are_shown_where_the_stored_contract_can_not_be_read(
    open_queue: OpenQueueFunction, capsys: pytest.CaptureFixture[str], contract: str
) -> None:
    queue = open_queue(checked=False)
    queue.client.hset("queue:settings", "contract", contract)
    queue.client.hdel("queue:settings", "actor", "reason")
    assert dispatch(["queue", "settings"]) == 0
    seen = capsys.readouterr()
    assert "contract.lease_ms" in seen.out
    assert seen.err.startswith("The contract stored for queue default can't be read: `sluicegate queue apply ")
