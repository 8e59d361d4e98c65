"""What text from outside looks like where a terminal or a line of its own shows it."""

from __future__ import annotations

import pytest

from sluicegate.printable import printable, words_of


@pytest.mark.parametrize("command", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202e", "\r", "\n", "\x00"])
def test_no_command_to_a_terminal_is_left(command: str) -> None:
    assert printable(f"a{command}b").isprintable()
    assert words_of(f"a{command}b").isprintable()


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("queue  über 90 %, 待ち") == "queue  über 90 %, 待ち"


def test_each_character_that_is_taken_out_leaves_a_mark() -> None:
    assert printable("a\x1b\nb") == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"


def test_words_stand_on_one_line_one_space_between_two() -> None:
    assert words_of("  one\n\ttwo \x07 three ") == "one two three"
