"""`sluicegate dashboards push` against a small server with the manners of Grafana's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluicegate.__main__ import dispatch
from sluicegate.records import DASHBOARD_UID, RUNS_DASHBOARD_UID
from tests.small_server import Handler, served

TOKEN = "glsa_a1b2c3d4e5f6"
UIDS = (DASHBOARD_UID, RUNS_DASHBOARD_UID)


class FakeGrafana:
    """Hold folders and dashboards as Grafana does; `fault` may answer in its place."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        self.dashboards: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.fault: Callable[[str, str, Handler], bool] = lambda *_: False

    def handler(self) -> type[Handler]:
        grafana = self

        class Api(Handler):
            def respond(self) -> None:
                grafana.asked.append(f"{self.command} {self.path}")
                if not grafana.fault(self.command, self.path, self):
                    status, body = grafana.answer(self)
                    self.answer(status, json.dumps(body).encode())

        return Api

    def answer(self, request: Handler) -> tuple[int, dict[str, Any]]:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return 401, {"message": f"Invalid API key {request.headers['Authorization']}"}
        *_, last = request.path.split("/")
        match f"{request.command} {request.path}".split("/")[:4]:
            case ["GET ", "api", "folders", _]:
                return (200, {"uid": last}) if last in self.folders else (404, {"message": "folder not found"})
            case ["POST ", "api", "folders"]:
                return self._make_folder(json.loads(request.body()))
            case ["GET ", "api", "dashboards", "uid"]:
                return self._found(last)
            case ["POST ", "api", "dashboards", "db"]:
                return self._save(json.loads(request.body()))
        return 404, {"message": "Not found"}

    def _make_folder(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["title"] in self.folders.values():
            return 409, {"message": "a folder with the same name already exists"}
        self.folders[body["uid"]] = body["title"]
        return 200, body

    def _found(self, uid: str) -> tuple[int, dict[str, Any]]:
        if uid not in self.dashboards:
            return 404, {"message": "Dashboard not found"}
        there = self.dashboards[uid]
        meta = {"folderUid": there["folder"], "version": there["body"]["version"], "updatedBy": there["by"]}
        return 200, {"dashboard": there["body"], "meta": meta}

    def _save(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["folderUid"] not in self.folders:
            return 400, {"message": "folder not found"}
        uid = body["dashboard"]["uid"]
        version = self.dashboards[uid]["body"]["version"] if uid in self.dashboards else 0
        if version and not body["overwrite"] and body["dashboard"].get("version", 0) != version:
            return 412, {
                "status": "version-mismatch",
                "message": "The dashboard has been changed by someone else",
            }
        saved = {**body["dashboard"], "id": 7, "version": version + 1}
        self.dashboards[uid] = {"body": saved, "folder": body["folderUid"], "by": "sa-sluicegate"}
        return 200, {"uid": uid, "status": "success", "version": version + 1}


class Pusher:
    """Push to a fake Grafana as a person types it."""

    def __init__(self, grafana: FakeGrafana, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.grafana = grafana
        self._token = folder / "grafana.token"
        self._token.write_text(f"{TOKEN}\n", encoding="utf-8")
        self._capsys = capsys

    def push(self, *more: str, token: str = TOKEN) -> tuple[int, str, str]:
        """Give exit code, output and errors; whatever happens, the token is in neither."""
        self._token.write_text(f"{token}\n", encoding="utf-8")
        with served(self.grafana.handler()) as address:
            where = ["--grafana-url", f"http://{address}/", "--token-file", str(self._token)]
            code = dispatch(["dashboards", "push", *where, *more])
        shown = self._capsys.readouterr()
        assert token not in shown.out + shown.err
        return code, shown.out, shown.err


@pytest.fixture
def pusher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Pusher:
    return Pusher(FakeGrafana(), tmp_path, capsys)


def test_the_folder_is_made_and_every_dashboard_created(pusher: Pusher) -> None:
    assert pusher.push() == (0, f"created: {UIDS[0]}\ncreated: {UIDS[1]}\n", "")
    assert pusher.grafana.folders == {"sluicegate": "Sluicegate"}
    there = pusher.grafana.dashboards
    assert set(there) == set(UIDS)
    assert {one["folder"] for one in there.values()} == {"sluicegate"}


def test_a_second_push_changes_nothing_and_says_so(pusher: Pusher) -> None:
    pusher.push()
    pusher.grafana.asked.clear()
    assert pusher.push() == (0, f"up to date: {UIDS[0]}\nup to date: {UIDS[1]}\n", "")
    assert [asked for asked in pusher.grafana.asked if asked.startswith("POST")] == []


def test_what_somebody_changed_is_left_alone_and_the_others_are_pushed_all_the_same(pusher: Pusher) -> None:
    pusher.push()
    pusher.grafana.dashboards[UIDS[0]]["body"]["title"] = "by hand"
    del pusher.grafana.dashboards[UIDS[1]]
    code, out, err = pusher.push()
    assert (code, out) == (1, f"created: {UIDS[1]}\n")
    assert err.startswith(f"left alone: {UIDS[0]}: The dashboard has been changed by someone else (version 1 by sa-")
    assert err.endswith("push with --overwrite to replace it.\n")
    assert pusher.grafana.dashboards[UIDS[0]]["body"]["title"] == "by hand"


def test_overwrite_replaces_it(pusher: Pusher) -> None:
    pusher.push()
    pusher.grafana.dashboards[UIDS[0]]["body"]["title"] = "by hand"
    assert pusher.push("--overwrite") == (0, f"replaced: {UIDS[0]}\nup to date: {UIDS[1]}\n", "")
    body = pusher.grafana.dashboards[UIDS[0]]["body"]
    assert (body["title"], body["version"]) == ("Sluicegate overview", 2)


def test_a_dashboard_in_another_folder_is_no_dashboard_in_this_one(pusher: Pusher) -> None:
    pusher.push()
    code, _, err = pusher.push("--folder", "night")
    assert code == 1
    assert err.count("left alone") == 2
    assert pusher.push("--folder", "night", "--overwrite")[0] == 0
    assert {one["folder"] for one in pusher.grafana.dashboards.values()} == {"night"}
    assert pusher.grafana.folders["night"] == "night"


def test_a_folder_that_somebody_makes_in_the_same_moment_is_taken(pusher: Pusher) -> None:
    def meanwhile(command: str, path: str, request: Handler) -> bool:
        if command != "POST" or path != "/api/folders":
            return False
        pusher.grafana.folders["sluicegate"] = "Sluicegate"
        request.answer(412, b'{"message": "version mismatch"}')
        return True

    pusher.grafana.fault = meanwhile
    assert pusher.push()[0] == 0


def test_a_folder_whose_name_is_taken_is_refused_in_grafanas_words(pusher: Pusher) -> None:
    pusher.grafana.folders["other"] = "Sluicegate"
    code, out, err = pusher.push()
    assert (code, out) == (1, "")
    assert "refused to make the folder sluicegate with 409: a folder with the same name already exists." in err


def test_a_wrong_token_is_refused_with_a_hint_and_is_not_repeated(pusher: Pusher) -> None:
    """The fake repeats the token in its answer, as a talkative proxy might."""
    code, _, err = pusher.push(token="glsa_wrong_token")
    assert code == 1
    assert "with 401: Invalid API key Bearer ***." in err
    assert err.endswith("Is it the token of a service account, and not one that has expired?\n")


def refusing(status: int, body: bytes, on: str = "/api/dashboards/db") -> Callable[[str, str, Handler], bool]:
    def fault(_: str, path: str, request: Handler) -> bool:
        if path != on:
            return False
        request.answer(status, body)
        return True

    return fault


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (refusing(403, b'{"message": "Access denied"}'), "with 403: Access denied.\nThe service account needs"),
        (refusing(400, b'{"message": "bad request data"}'), "refused the dashboard sluicegate-overview with 400: bad"),
        (refusing(500, b"<html>"), "with 500: no reason given."),
        (refusing(502, b'{"message": "line\\none"}'), "with 502: line one."),
        (refusing(599, b""), "with 599: no reason given."),
        (refusing(302, b""), "sends to another address"),
        (refusing(200, b"<html>welcome", "/api/folders/sluicegate"), "is it a Grafana?"),
        (refusing(503, b"{}", "/api/folders/sluicegate"), "refused to be asked for the folder with 503"),
    ],
)
def test_a_refusal_is_one_sentence(pusher: Pusher, fault: Callable[[str, str, Handler], bool], said: str) -> None:
    pusher.grafana.fault = fault
    code, _, err = pusher.push()
    assert code == 1
    assert said in err
    assert "Traceback" not in err


@contextmanager
def held(grafana: FakeGrafana) -> Iterator[None]:
    """Let no request be answered before the block ends."""
    over = threading.Event()
    grafana.fault = lambda *_: over.wait(30)
    try:
        yield
    finally:
        over.set()


def test_a_grafana_that_does_not_answer_is_given_up(pusher: Pusher, capsys: pytest.CaptureFixture[str]) -> None:
    token = pusher._token
    with served(pusher.grafana.handler()) as address, held(pusher.grafana):
        words = ["--grafana-url", f"http://{address}", "--token-file", str(token), "--within", "1"]
        assert dispatch(["dashboards", "push", *words]) == 1
    assert "has not answered within 1 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "token", "code", "said"),
    [
        ("http://127.0.0.1:1", TOKEN, 1, "Grafana at 127.0.0.1:1 can't be reached"),
        ("grafana.example", TOKEN, 2, "no address of an HTTP server"),
        ("http://127.0.0.1:1", "tökén", 2, "holds signs that no token has"),
        ("http://127.0.0.1:1", "", 2, "holds nothing"),
    ],
)
def test_what_cannot_be_sent_is_said(
    url: str, token: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    assert dispatch(["dashboards", "push", "--grafana-url", url, "--token-file", str(file)]) == code
    err = capsys.readouterr().err
    assert said in err
    assert not token or token not in err
