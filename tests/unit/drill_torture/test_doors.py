"""What callers hear is written down as it was said; what nobody is promised is trouble."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drill.torture.conductor import cut_to
from drill.torture.doors import (
    ACCEPTED,
    REFUSED,
    TROUBLE,
    UNANSWERED,
    Answer,
    Api,
    Heard,
    canonical,
    heard,
    of_decision,
)
from drill.torture.onlooker import FileSize, newest_file
from sluicegate import http_answers
from sluicegate.admission import Decision
from sluicegate.http_answers import HttpAnswer, Trouble, problem
from sluicegate.http_bodies import JobRequest
from tests.small_server import Handler, served

DECISIONS = [
    Decision(True, "k"),
    Decision(True, "k", replayed=True),
    Decision(False, "k", "overloaded", 30.0),
    Decision(False, "k", "browser_limit", 0.861, replayed=True),
    Decision(False, "k", "unknown_class", None),
]


def response(answer: HttpAnswer) -> Answer:
    parsed = json.loads(answer.body) if answer.body.startswith(b"{") else None
    return Answer(answer.status, parsed)


@pytest.mark.parametrize("decision", DECISIONS)
def test_both_doors_hear_the_same_of_one_decision(decision: Decision) -> None:
    said = heard(response(http_answers.decided(decision)))
    assert said == of_decision(decision)
    assert said.answer == (ACCEPTED if decision.accepted else REFUSED)


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (http_answers.unanswered("Ask again."), UNANSWERED),
        (http_answers.store_rejected(), UNANSWERED),
        (problem(Trouble.INTERNAL_ERROR, "what"), TROUBLE),
        (problem(Trouble.MALFORMED, "what"), TROUBLE),
        (HttpAnswer(200, b"[]"), TROUBLE),
        (HttpAnswer(502, b"<html>"), TROUBLE),
    ],
)
def test_an_answer_without_a_decision_is_unanswered_only_where_callers_are_promised_that(
    answer: HttpAnswer, word: str
) -> None:
    assert heard(response(answer)).answer == word


def test_a_broken_connection_is_no_answer() -> None:
    assert heard("ConnectionResetError") == Heard(UNANSWERED, reason="ConnectionResetError", retry_after_s=1.0)


def test_an_unanswered_caller_is_told_when_to_come_back() -> None:
    said = heard(response(http_answers.unanswered("Ask again.")))
    assert said == Heard(UNANSWERED, reason="unanswered", retry_after_s=1.0)


def test_a_key_has_one_payload_whichever_door_it_comes_through() -> None:
    payload: dict[str, object] = {"work": 7, "other": True}
    asked = JobRequest.model_validate_json(json.dumps({"class": "lint-fix", "payload": payload}))
    assert asked.payload_text() == canonical(payload)


def test_what_was_not_forced_to_the_disk_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "appendonly.aof.1.incr.aof"
    file.write_bytes(b"forced, not forced")
    assert cut_to(FileSize(0.0, file, len(b"forced"))) == len(b", not forced")
    assert file.read_bytes() == b"forced"


def test_nothing_is_cut_off_that_was_there_before(tmp_path: Path) -> None:
    file = tmp_path / "appendonly.aof.1.incr.aof"
    file.write_bytes(b"all")
    assert cut_to(FileSize(0.0, file, 3)) == 0
    assert cut_to(None) == 0
    assert file.read_bytes() == b"all"


def test_the_file_that_is_written_to_is_the_newest(tmp_path: Path) -> None:
    assert newest_file(tmp_path) is None
    (tmp_path / "appendonlydir").mkdir()
    for name in ("appendonly.aof.1.incr.aof", "appendonly.aof.2.incr.aof", "appendonly.aof.2.base.rdb"):
        (tmp_path / "appendonlydir" / name).write_bytes(b"")
    newest = newest_file(tmp_path)
    assert newest is not None
    assert newest.name == "appendonly.aof.2.incr.aof"


class Jobs(Handler):
    """Answer as the API does of four jobs, each by its own name."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        answers: dict[str, tuple[int, object]] = {
            "/v1/jobs/torture%3A1": (200, {"state": "succeeded"}),
            "/v1/jobs/nothing": (200, []),
            "/v1/jobs/absent": (404, {"reason": "no_such_job"}),
            "/v1/jobs/elsewhere": (404, {"reason": "no_such_path"}),
        }
        status, body = answers.get(self.path, (503, {"reason": "unanswered"}))
        self.answer(status, json.dumps(body).encode())


def test_a_look_tells_a_job_from_none_and_both_from_no_answer() -> None:
    with served(Jobs) as address:
        looks = Api([f"http://{address}"])
        told = [looks.state(key) for key in ("torture:1", "absent", "elsewhere", "while it is down", "torture:1")]
        assert told == ["succeeded", "gone", "status 404", UNANSWERED, "succeeded"]
        assert looks.ask("GET", "/v1/jobs/nothing") == Answer(200, None)
    assert Api([f"http://{address}"]).state("torture:1") == UNANSWERED
