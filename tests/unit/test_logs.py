"""What a service logs: JSON lines for programs, and for a terminal no text that it would obey."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from sluicegate import logs

NAME = "Odd\x1b[2J\r\n\u2028alert"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
