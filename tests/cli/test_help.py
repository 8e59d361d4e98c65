"""Every word and every command below it explains itself, with an example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer

from sluicegate.__main__ import WORDS


def sluicegate(
    *arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a person would; `environment` goes over that of the test."""
    return subprocess.run(
        [sys.executable, "-m", "sluicegate", *arguments],
        cwd=cwd,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def commands(word: str) -> Iterator[tuple[list[str], typer.core.TyperCommand]]:
    """Yield the arguments that lead to each command below a word, and the command, the word's own last."""
    open_ends: list[tuple[list[str], object]] = [
        ([word], typer.main.get_command(import_module(WORDS[word].module).app))
    ]
    while open_ends:
        path, command = open_ends.pop()
        open_ends += [([*path, name], below) for name, below in getattr(command, "commands", {}).items()]
        yield path, command  # type: ignore[misc]  # groups and commands share what is read of them here


@pytest.mark.parametrize("word", WORDS)
def test_a_words_help_exits_0_and_shows_an_example_of_it(word: str) -> None:
    result = sluicegate(word, "--help")
    assert result.returncode == 0, result.stderr
    assert re.search(rf"sluicegate {word}\b.*", result.stdout.partition("xample")[2]), result.stdout


@pytest.mark.parametrize("word", WORDS)
def test_every_command_below_a_word_has_a_help_text_and_an_example(word: str) -> None:
    for path, command in commands(word):
        named = " ".join(["sluicegate", *path])
        assert command.help, f"{named} says nothing about itself"
        epilog = " ".join((command.epilog or "").split())
        assert named in epilog, f"{named} shows no example in its epilog but {epilog!r}"


@pytest.mark.parametrize("arguments", [("--help",), ("queue", "--help"), ("drill", "--list"), ("queue", "settings")])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_our_signs_gets_the_text_all_the_same(encoding: str, arguments: tuple[str, ...]) -> None:
    result = sluicegate(*arguments, environment={"PYTHONIOENCODING": encoding, "REDIS_URL": "redis://127.0.0.1:1/0"})
    assert "Traceback" not in result.stderr
    assert "UnicodeEncodeError" not in result.stderr
    assert len(result.stdout) > 100


def test_the_overview_lists_every_word_with_a_line() -> None:
    result = sluicegate("--help")
    assert result.returncode == 0
    for name, word in WORDS.items():
        assert re.search(rf"^  {name}\s+{re.escape(word.summary)}$", result.stdout, re.MULTILINE)
    assert "Example: sluicegate drill" in result.stdout


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"sluicegate \d+\.\d+\.\d+\n", sluicegate("--version").stdout)


@pytest.mark.parametrize(
    ("arguments", "sentence", "hint"),
    [
        (["drlil"], "`drlil` is not a word of sluicegate.", "Did you mean `sluicegate drill`?"),
        (["xyzzy"], "`xyzzy` is not a word of sluicegate.", f"The words are {', '.join(WORDS)}."),
        (["gate", "--wrong"], "No such option: --wrong.", "`sluicegate gate --help` shows what can be said here."),
    ],
)
def test_bad_input_gets_a_sentence_a_hint_and_exit_code_2(arguments: list[str], sentence: str, hint: str) -> None:
    result = sluicegate(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [sentence, hint]


def test_no_word_at_all_shows_the_overview_and_exits_2() -> None:
    result = sluicegate()
    assert result.returncode == 2
    assert "Words:" in result.stderr


def test_a_folder_of_the_same_name_where_it_is_called_does_not_stand_in_for_a_part(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "__init__.py").write_text("raise SystemExit('the wrong rules')\n")
    result = sluicegate("rules", "--help", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_reader_that_goes_away_leaves_no_traceback() -> None:
    script = f"{sys.executable} -m sluicegate --help | head -c 1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr
