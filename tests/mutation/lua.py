"""Split Lua 5.1 source into tokens, so that nothing inside a string or a comment is taken for code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Name the kinds of token; blanks and comments are none."""

    WORD = "word"  # a name or a keyword
    NUMBER = "number"
    STRING = "string"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Token:
    """Hold one token and where its text begins and ends in the source."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.kind is Kind.WORD and self.text in words

    def is_operator(self, *operators: str) -> bool:
        return self.kind is Kind.OPERATOR and self.text in operators


# In the order of the manual's section 2.1; the first that fits counts.
_TOKEN = re.compile(
    r"""
    (?P<skipped> \s+ | --\[(?P<level>=*)\[.*?\](?P=level)\] | --[^\n]* )
    | (?P<string> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \[(?P<depth>=*)\[.*?\](?P=depth)\] )
    | (?P<number> 0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<operator> \.\.\. | \.\. | == | ~= | <= | >= | [-+*/%^\#<>=(){}\[\];:,.] )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(source: str) -> tuple[Token, ...]:
    """Give the tokens in order; raises ValueError with the line of what is none."""
    return tuple(_tokens(source))


def _tokens(source: str) -> Iterator[Token]:
    place = 0
    while place < len(source):
        match = _TOKEN.match(source, place)
        if match is None:
            raise ValueError(f"line {line_of(source, place)} holds no Lua token: {source[place : place + 20]!r}")
        for kind in Kind:
            if match[kind] is not None:
                yield Token(kind, match[kind], match.start(), match.end())
        place = match.end()


def line_of(source: str, place: int) -> int:
    """Give the number, from 1, of the line that a place in the source is on."""
    return source.count("\n", 0, place) + 1
