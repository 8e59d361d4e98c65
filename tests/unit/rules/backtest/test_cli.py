"""`sluicegate rules backtest` on a Prometheus that does not answer as it should: one sentence, exit code 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import responses

from rules.scope import Scope
from sluicegate import records
from sluicegate.__main__ import dispatch
from sluicegate.records import AlertName
from sluicegate.settings import default_settings

URL = "http://prometheus.test:9090"
COMMAND = ["rules", "backtest", "--prometheus-url", URL]
# An hour ago and five minutes of it, evaluated every two seconds.
BEGINS_S, ENDS_S, EVERY_S = 1_772_366_400, 1_772_366_700, 2
PERIOD = ["--since", "2026-03-01T12:00Z", "--until", "2026-03-01T12:05Z"]
Answer = tuple[int, dict[str, str], str]
SNAPSHOT = Scope(default_settings()).series(records.SNAPSHOT)


def body(*result: dict[str, Any], **fields: Any) -> Answer:
    return (
        200,
        {},
        json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(result)}, **fields}),
    )


def fake(query: str, begins: float, ends: float) -> Answer:
    """Answer as a Prometheus would whose queue was healthy, and whose age had no number for a while."""
    instants = [at for at in range(BEGINS_S, ENDS_S, EVERY_S) if begins <= at <= ends]
    if query.startswith(("ALERTS", SNAPSHOT)) and query.endswith("ms]"):
        return body({"metric": {}, "values": [[at, "1"] for at in instants]})
    if records.QUEUE_AGE.name in query and ">= 25" in query:
        return body({"metric": {"queue": "default"}, "values": [[at, "NaN"] for at in instants[10:40]]})
    if records.CLASS_OUTCOMES.name in query and "last_over_time" in query:
        return body({"metric": {"class": "lint-fix"}, "values": [[at, "NaN"] for at in instants[10:40]]})
    return body()


@pytest.fixture
def answers() -> Iterator[Callable[[Callable[[str, float, float], Answer]], None]]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:

        def by(answer: Callable[[str, float, float], Answer]) -> None:
            def respond(request: requests.PreparedRequest) -> Answer:
                asked = parse_qs(urlsplit(str(request.url)).query)
                if "time" in asked:
                    return answer(asked["query"][0], 0, float(asked["time"][0]))
                return answer(asked["query"][0], float(asked["start"][0]), float(asked["end"][0]))

            for path in ("query", "query_range"):
                mock.add_callback(responses.GET, f"{URL}/api/v1/{path}", callback=respond)

        yield by


def test_a_sample_that_is_no_number_is_a_sample_of_an_alert_and_no_missed_deadline(
    answers: Callable[[Callable[[str, float, float], Answer]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    answers(fake)
    assert dispatch([*COMMAND, *PERIOD, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    fired = {one["alert"]: one["pages"] for one in found["alerts"] if one["pages"]}
    assert list(fired) == [AlertName.QUEUE_AGE_CRITICAL]
    assert found["incidents"] == []


FAILURES: dict[str, tuple[Answer, str]] = {
    "empty": (body(), "The history holds nothing of queue default"),
    "500": ((500, {}, json.dumps({"status": "error", "error": "disk is gone"})), "answered 500: disk is gone"),
    "bad JSON": ((200, {}, '{"status"'), "what is no JSON"),
    "part of it": (body(warnings=["store gateway 2 is away"]), "has only part of the answer"),
    "its own timeout": ((503, {}, json.dumps({"status": "error", "error": "query timed out"})), "query timed out"),
}


@pytest.mark.parametrize(
    ("name", "late"), [(name, late) for name in FAILURES for late in (False, True) if not late or name != "empty"]
)
def test_without_a_whole_answer_nothing_is_shown(
    answers: Callable[[Callable[[str, float, float], Answer]], None],
    name: str,
    late: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failure, said = FAILURES[name]
    answers(lambda query, begins, ends: failure if not late or "provider" in query else fake(query, begins, ends))
    plot = tmp_path / "week.svg"

    assert dispatch([*COMMAND, *PERIOD, "--plot", str(plot)]) == 1

    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert not plot.exists()


def test_a_picture_in_a_folder_that_is_not_there_is_refused_before_a_long_replay(
    answers: Callable[[Callable[[str, float, float], Answer]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(fake)
    plot = tmp_path / "weks" / "week.svg"
    assert dispatch([*COMMAND, *PERIOD, "--plot", str(plot)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"The picture {plot} cannot be written: there is no folder {plot.parent}.")
    assert (shown.out, plot.parent.exists()) == ("", False)


def test_a_prometheus_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["rules", "backtest", "--prometheus-url", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == "Prometheus at 127.0.0.1:1 can't be reached: Connection refused.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prometheus-url", "prometheus"], "no address of an HTTP server"),
        (["--prometheus-url", URL, "--since", "soon"], "--since 'soon' is no time"),
        (["--prometheus-url", URL, "--since", "1h", "--until", "2h"], "is not before"),
        (["--prometheus-url", URL, "--step", "5"], "--step '5' is no duration"),
        (["--prometheus-url", URL, "--token-file", "/nowhere"], "--token-file names /nowhere"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_asked(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["rules", "backtest", *words]) == 2
    assert said in capsys.readouterr().err
