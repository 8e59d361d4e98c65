"""Put marks into Lua source that say, after a test, which parts of it have run.

A mark stands where a run of statements begins: after `then`, `else`, `do` and a function's head, after a block, and
before each statement that begins with a word of the language. The condition of an `elseif` is wrapped in one. What is
between two marks runs whole or, after an error, in part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.mutation.lua import Token

FUNCTION = "mutation_marks"
# A table that lives as long as the library, and is not one of the server's keys: marks change nothing that a test sees.
DECLARATION = "local X = {} local function H(n, ...) X[n] = true return ... end "
REGISTRATION = f"""
redis.register_function{{ function_name = '{FUNCTION}', flags = {{ 'no-writes' }}, callback = function()
  local list = {{}} for n in pairs(X) do list[#list + 1] = n end return list end }}
"""
_BEFORE = frozenset({"local", "return", "if", "for", "while", "break"})


@dataclass
class Outline:
    """Say of each token which function it is in and which mark stands before it, and where marks go."""

    functions: list[str] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    insertions: list[tuple[int, str]] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)  # of each mark, the function that it stands in

    def marked(self, source: str) -> str:
        """Give the source with its marks; the lines stay where they are."""
        for place, text in sorted(self.insertions, reverse=True):
            source = source[:place] + text + source[place:]
        return source


@dataclass
class _Block:
    function: str  # the name of the function it is in, "" outside
    inside_expression: bool = False  # of a function without a name: what follows it is no statement
    mark_before: int = 0


class _Walk:
    def __init__(self, source_tokens: tuple[Token, ...], numbers: Iterator[int]) -> None:
        self.tokens = source_tokens
        self.numbers = numbers
        self.outline = Outline()
        self.blocks = [_Block("")]
        self.mark = 0
        self._next_mark()

    def run(self) -> Outline:
        head_until = elseif_until = -1
        for number, token in enumerate(self.tokens):
            if token.is_word(*_BEFORE):
                self._mark_at(token.start)
            self.outline.functions.append(self.blocks[-1].function)
            self.outline.marks.append(self.mark)
            if token.is_word("function"):
                head_until = self._open_function(number)
            elif number == head_until:
                self._mark_at(token.end)
            elif token.is_word("elseif"):
                elseif_until = condition_end(self.tokens, number)
                self._wrap(token.end, self.tokens[elseif_until].start)
            elif token.is_word("if", "do"):
                self.blocks.append(_Block(self.blocks[-1].function))
            elif token.is_word("end"):
                self._close(token)
            if token.is_word("then", "else", "do"):
                self._mark_at(token.end)
        return self.outline

    def _open_function(self, number: int) -> int:
        """Begin a function; gives the number of the token that ends its head."""
        name, place = "", number + 1
        while not self.tokens[place].is_operator("("):
            name += self.tokens[place].text
            place += 1
        block = _Block(name or self.blocks[-1].function, inside_expression=not name, mark_before=self.mark)
        self.blocks.append(block)
        while not self.tokens[place].is_operator(")"):
            place += 1
        return place

    def _close(self, token: Token) -> None:
        block = self.blocks.pop()
        if block.inside_expression:
            self.mark = block.mark_before
        else:
            self._mark_at(token.end)

    def _mark_at(self, place: int) -> None:
        self._next_mark()
        self.outline.insertions.append((place, f" X[{self.mark}]=true; "))

    def _wrap(self, start: int, end: int) -> None:
        self._next_mark()
        self.outline.insertions += [(start, f" H({self.mark},"), (end, ") ")]

    def _next_mark(self) -> None:
        self.mark = next(self.numbers)
        self.outline.owners[self.mark] = self.blocks[-1].function


def outline(source_tokens: tuple[Token, ...], numbers: Iterator[int]) -> Outline:
    """Find the functions and the places of marks; each mark takes the next number."""
    return _Walk(source_tokens, numbers).run()


_OPENS = ("function", "if", "do", "repeat")
_CLOSES = ("end", "until")


def condition_end(source_tokens: tuple[Token, ...], opened: int) -> int:
    """Give the number of the `then` or `do` that ends the condition of the `if`, `elseif` or `while` at a number."""
    ends = "do" if source_tokens[opened].is_word("while") else "then"
    depth = 0
    for number in range(opened + 1, len(source_tokens)):
        token = source_tokens[number]
        if depth == 0 and token.is_word(ends):
            return number
        depth += token.is_word(*_OPENS) - token.is_word(*_CLOSES)
    raise ValueError("a condition never ends")
