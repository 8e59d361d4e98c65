"""Look at text from outside: whether it is text at all, and how it is written without being a command to a terminal."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, instead: str = REPLACEMENT) -> str:
    """Put `instead` in the place of each character that isn't printable: control characters, line breaks."""
    return "".join(character if character.isprintable() else instead for character in text)


def is_text(text: str) -> bool:
    """Say whether a text can be written down as UTF-8; bytes that were none have come as surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def words_of(text: str) -> str:
    """Give a text on one line: its printable words, one space between two."""
    return " ".join(printable(text, " ").split())
