"""A planned run silences what it makes by itself in a real Alertmanager, and no longer than it lasts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from automation.metrics import AutomationMetrics
from automation.notices.sender import Sender
from automation.notices.silences import SILENCED, of_run
from automation.notices.telling import _OVER
from drill.children import Children
from drill.monitoring import Alertmanager
from rules.alert import SluicegateAction
from rules.generate import catalogue
from sluicegate.__main__ import dispatch
from sluicegate.clock import SystemClock
from sluicegate.notice_board import NoticeBoard
from sluicegate.records import AlertName
from sluicegate.service_settings import ReceiverKind, ReceiverSettings
from sluicegate.settings import default_settings
from tests.automation_parts import Queue, quick

ROUTING = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"
PERSON = ("--as", "ann", "--reason", "the provider moves")


@pytest.fixture(scope="module")
def alertmanager() -> Iterator[Alertmanager]:
    with Children() as children:
        running = Alertmanager(children, ROUTING)
        running.start()
        yield running


@pytest.fixture
def planned(redis_url: str, tmp_path: Path, alertmanager: Alertmanager) -> Iterator[tuple[Queue, Path]]:
    """Return an open queue, and the file with its settings."""
    queue = Queue(redis_url, quick(tmp_path, automation={"alertmanager_url": alertmanager.url}))
    path = tmp_path / "sluicegate.yaml"
    path.write_text(yaml.safe_dump(queue.settings.model_dump(mode="json")))
    yield queue, path
    queue.close()


def silences(alertmanager: Alertmanager) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = httpx.get(f"{alertmanager.url}/api/v2/silences").json()
    return [one for one in rows if one["status"]["state"] != "expired"]


def run(path: Path, *words: str) -> int:
    return dispatch(["automation", "run", "drain-and-recover", *PERSON, *words, "--settings", str(path)])


async def tell(url: str, redis_url: str) -> None:
    """Let the service's own sender hear what happened."""
    board = NoticeBoard.connect(redis_url)
    receiver = ReceiverSettings(kind=ReceiverKind.ALERTMANAGER, url=url, tells=_OVER)
    sender = Sender("silences of runs", receiver, board, "c1", lambda: True, AutomationMetrics(), SystemClock())
    await sender.turn()
    await sender.stop()
    board.close()


def test_a_silence_lasts_as_long_as_its_run(
    planned: tuple[Queue, Path], alertmanager: Alertmanager, redis_url: str
) -> None:
    queue, path = planned
    asyncio.run(tell(alertmanager.url, redis_url))
    others = {
        "matchers": [{"name": "queue", "value": "default", "isRegex": False}],
        "startsAt": "2026-01-01T00:00:00Z",
        "endsAt": "2099-01-01T00:00:00Z",
        "createdBy": "bob",
        "comment": "a person's own",
    }
    kept = httpx.post(f"{alertmanager.url}/api/v2/silences", json=others).json()["silenceID"]
    assert run(path, "--silence", "90m") == 0
    (made,) = [one for one in silences(alertmanager) if one["id"] != kept]
    (record,) = queue.store.runs(1)
    assert made["comment"] == f"run {record.run_id}: ann: the provider moves"
    matchers = {one["name"]: one["value"] for one in made["matchers"]}
    assert matchers == {"queue": "default", "alertname": "|".join(SILENCED)}

    asyncio.run(tell(alertmanager.url, redis_url))
    assert len(silences(alertmanager)) == 2, "the run is not over"
    queue.store.order("abort", "ann", "enough")
    asyncio.run(tell(alertmanager.url, redis_url))
    assert [one["id"] for one in silences(alertmanager)] == [kept], "nobody else's silence is touched"
    httpx.delete(f"{alertmanager.url}/api/v2/silence/{kept}")


def test_a_run_that_is_not_opened_leaves_no_silence(
    planned: tuple[Queue, Path], alertmanager: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, path = planned
    queue.open_run()
    assert run(path, "--silence", "10m") == 1
    assert silences(alertmanager) == []
    capsys.readouterr()


def test_without_its_silence_no_run_is_opened(
    planned: tuple[Queue, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    queue, path = planned
    body = yaml.safe_load(path.read_text())
    body["automation"]["alertmanager_url"] = "http://127.0.0.1:9"
    path.write_text(yaml.safe_dump(body))
    assert run(path, "--silence", "10m") == 1
    assert "did not take the silence" in capsys.readouterr().err
    assert queue.store.runs(1) == ()


@pytest.mark.parametrize(("words", "said"), [(("--silence", "soon"), "no duration"), (("--silence", "5m"), "is named")])
def test_what_can_not_be_silenced_is_said(
    planned: tuple[Queue, Path], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    queue, path = planned
    body = yaml.safe_load(path.read_text())
    body["automation"]["alertmanager_url"] = None
    path.write_text(yaml.safe_dump(body))
    assert run(path, *words) == 2
    assert said in capsys.readouterr().err
    assert queue.store.runs(1) == ()


def test_what_watches_is_never_silenced() -> None:
    actions = {alert.name: alert.action for alert in catalogue(default_settings())}
    assert {actions[name] for name in SILENCED} <= {
        SluicegateAction.REJECT_NEW,
        SluicegateAction.DRAIN,
        SluicegateAction.HOLD,
        SluicegateAction.OBSERVE,
    }
    watching = [name for name in AlertName if any(word in name for word in ("Executor", "Controller", "Telemetry"))]
    never = {*watching, AlertName.WATCHDOG, AlertName.GATE_PINNED, AlertName.DUPLICATE_SIDE_EFFECT}
    assert never.isdisjoint(SILENCED)


@pytest.mark.parametrize(
    "row",
    [
        {"id": "1", "createdBy": "bob", "comment": "run r-1: x", "status": {"state": "active"}},
        {"id": "1", "createdBy": "sluicegate", "comment": "run r-10: x", "status": {"state": "active"}},
        {"id": "1", "createdBy": "sluicegate", "comment": "run r-1: x", "status": {"state": "expired"}},
        {"id": "1", "createdBy": "sluicegate", "comment": "run r-1: x"},
    ],
)
def test_only_a_runs_own_live_silences_are_its(row: dict[str, Any]) -> None:
    own = {"id": "7", "createdBy": "sluicegate", "comment": "run r-1: x", "status": {"state": "pending"}}
    assert of_run([row, json.loads(json.dumps(own))], "r-1") == ("7",)
