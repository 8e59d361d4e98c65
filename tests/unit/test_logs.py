"""What a service logs: JSON lines for programs, and for a terminal no text that it would obey."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import logging
import math
import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog

from sluicegate import logs

NAME = "Odd\x1b[2J\r\n\u2028alert"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class FullDisk(io.StringIO):
    """Be a stream that takes nothing as long as it is full, as a file does whose buffer has to be written first."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_a_terminal_gets_no_control_character_of_anybody_elses() -> None:
    stream = Terminal()
    logs.configure(stream=stream)
    structlog.get_logger("a").warning("looked", alert=NAME, number=7)
    said = stream.getvalue()
    assert "\x1b[2J" not in said
    assert "Odd�[2J���alert" in said
    assert said.count("\n") == 1


def test_a_trace_keeps_its_lines_on_a_terminal() -> None:
    stream = Terminal()
    logs.configure(stream=stream)
    try:
        raise ValueError("odd")
    except ValueError:
        structlog.get_logger("a").exception("turn_failed")
    assert 'raise ValueError("odd")\n' in stream.getvalue()


def test_a_program_gets_texts_as_they_are() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    structlog.get_logger("a").warning("looked", alert=NAME)
    assert json.loads(stream.getvalue())["alert"] == NAME


def test_a_line_says_what_level_and_when_in_utc_after_what_was_said_and_a_trace_where_there_is_one() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    log = structlog.get_logger("a").bind(worker_id="w1")
    before = datetime.now(UTC)
    log.warn("looked", number=0.5, of=1j)
    try:
        raise ValueError("odd")
    except ValueError:
        log.exception("turn_failed")
    looked, failed = (json.loads(line) for line in stream.getvalue().splitlines())
    assert list(looked) == ["worker_id", "number", "of", "event", "level", "timestamp"]
    assert [looked["level"], failed["level"], looked["of"]] == ["warning", "error", "1j"]
    assert before <= datetime.fromisoformat(looked["timestamp"]) <= datetime.now(UTC)
    assert looked["timestamp"].endswith("Z")
    assert 'raise ValueError("odd")' in failed["exception"]
    assert "exc_info" not in failed


def test_a_line_is_in_ascii_and_valid_whatever_is_said() -> None:
    said = {"name": "Zoë", "half": "\ud83d", "many": 2**80, "none": math.nan, "raw": {1: "x"}}
    stream = io.StringIO()
    logs.configure(stream=stream)
    for name, value in said.items():
        structlog.get_logger("a").warning("said", **{name: value})
    lines = stream.getvalue().splitlines()
    assert all(line.isascii() for line in lines)
    found = {name: json.loads(line)[name] for name, line in zip(said, lines, strict=True)}
    assert found == {"name": "Zoë", "half": "\ud83d", "many": 2**80, "none": None, "raw": {"1": "x"}}
    for name in ("Zoë", "Zoe"):
        structlog.get_logger("a").warning("said", name=name, none=math.nan)
        # As people look for it with grep.
        assert '", "none": null, "event": "said", "level": ' in stream.getvalue().splitlines()[-1]


def test_less_than_was_asked_for_is_not_said() -> None:
    stream = io.StringIO()
    logs.configure(logging.ERROR, stream)
    structlog.get_logger("a").warning("looked")
    assert stream.getvalue() == ""


def test_lines_that_the_stream_can_not_take_are_lost_without_an_error_and_counted_once_it_can() -> None:
    stream = FullDisk()
    logs.configure(stream=stream)
    log = structlog.get_logger("a")
    log.warning("before")
    stream.full = True
    log.warning("lost")
    log.warning("lost too")
    stream.full = False
    log.warning("after")
    log.warning("later")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["before", "log_lines_lost", "after", "later"]
    assert lines[1]["lines"] == 2


def test_a_stream_whose_reader_has_gone_ends_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        logs.configure(stream=stream)
        structlog.get_logger("a").warning("unread")
        with contextlib.suppress(BrokenPipeError):
            stream.close()
