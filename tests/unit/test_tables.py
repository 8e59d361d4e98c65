"""Tables show every cell whole and as it is, whatever the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from sluicegate.tables import table_lines

HEAD = ("setting", "default", "bound")
ROWS = [("queue", "default", "^[a-z][a-z0-9]*$"), ("contract.timings.canary_latency_floor_s", "1", "")]


def test_a_program_gets_a_line_a_row_with_tabs() -> None:
    assert list(table_lines(HEAD, ROWS, None)) == [
        "setting\tdefault\tbound",
        "queue\tdefault\t^[a-z][a-z0-9]*$",
        "contract.timings.canary_latency_floor_s\t1\t",
    ]


def test_a_wide_terminal_gets_columns() -> None:
    lines = list(table_lines(HEAD, ROWS, 80))
    assert [line.split() for line in lines] == [list(HEAD), list(ROWS[0]), list(ROWS[1][:2])]
    assert len({line.index(cell) for line, cell in zip(lines, ("default", "default", "1 "[:1]), strict=True)}) == 1


def test_a_narrow_terminal_gets_each_row_below_its_name() -> None:
    assert list(table_lines(HEAD, ROWS, 60)) == [
        "queue",
        "  default: default",
        "  bound: ^[a-z][a-z0-9]*$",
        "contract.timings.canary_latency_floor_s",
        "  default: 1",
    ]


def test_no_rows_are_the_head_alone() -> None:
    assert list(table_lines(HEAD, [], 80)) == ["setting  default  bound"]


WORDS = (("queue", "settings", "--redis-url", "redis://127.0.0.1:1/0"), ("rules", "show"))


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("columns", ["80", "400", ""], ids=["narrow", "wide", "pipe"])
def test_commands_cut_nothing_short(words: tuple[str, ...], columns: str) -> None:
    text = _in_terminal(words, columns) if columns else _in_pipe(words)
    assert "\u2026" not in text
    for whole in (
        ("contract.timings.canary_latency_floor_s", "^[a-z]")
        if words[0] == "queue"
        else ("SluicegateDuplicateSideEffect", "page")
    ):
        assert whole in text


def _in_pipe(words: tuple[str, ...]) -> str:
    done = subprocess.run([sys.executable, "-m", "sluicegate", *words], capture_output=True, timeout=60, check=True)
    return done.stdout.decode()


def _in_terminal(words: tuple[str, ...], columns: str) -> str:
    """Run a command on a terminal of so many columns and give what it shows."""
    near, far = pty.openpty()
    environment = {**os.environ, "COLUMNS": columns, "TERM": "xterm-256color"}
    child = subprocess.Popen(
        [sys.executable, "-m", "sluicegate", *words], stdout=far, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(far)
    shown = b""
    try:
        while part := os.read(near, 65_536):
            shown += part
    except OSError:  # the terminal's other end is closed: the command has ended
        pass
    finally:
        os.close(near)
    assert child.wait(60) == 0
    return shown.decode()
