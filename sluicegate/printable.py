"""Write text from outside so that no part of it is a command to a terminal, or breaks the line that it stands in."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, instead: str = REPLACEMENT) -> str:
    """Put `instead` in the place of each character that isn't printable: control characters, line breaks."""
    return "".join(character if character.isprintable() else instead for character in text)


def words_of(text: str) -> str:
    """Give a text on one line: its printable words, one space between two."""
    return " ".join(printable(text, " ").split())
