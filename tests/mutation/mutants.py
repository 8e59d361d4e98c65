"""Say what can be changed in one Lua file: every condition, comparison, `and`, `or` and `not`, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.mutation.lua import Token, line_of, tokens
from tests.mutation.marks import Outline, condition_end, outline

# Each comparison with its bound moved, and with its answer turned round.
_SWAPS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("~=",),
    "~=": ("==",),
    "and": ("or",),
    "or": ("and",),
}
_TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "~=", "~=": "=="}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Hold one change: `replacement` goes where the source has what is from `start` to `end`."""

    file: str
    line: int
    function: str
    text: str  # of the line, without its blanks at both ends
    mutation: str
    mark: int
    start: int
    end: int
    replacement: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Give what stays the same when lines move."""
        return self.file, self.function, self.text, self.mutation

    def altered(self, source: str) -> str:
        """Give the file's source with this change."""
        return source[: self.start] + self.replacement + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.mutation} | {self.text}"


def mutants_of(file: str, source: str, numbers: Iterator[int]) -> tuple[tuple[Mutant, ...], Outline]:
    """Give a file's mutants in the order of their places, and its outline, whose marks take the next numbers."""
    found = tokens(source)
    lines = source.splitlines()
    outlined = outline(found, numbers)
    met: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    for number, start, end, mutation, replacement in sorted(_changes(found, source), key=lambda change: change[0]):
        line = line_of(source, found[number].start)
        function, text = outlined.functions[number] or "-", lines[line - 1].strip()
        met[function, text, mutation] += 1
        nth = met[function, text, mutation]
        name = mutation if nth == 1 else f"{mutation} ({nth})"
        # A condition stands for the statements before it too; only that of an `elseif` has a mark of its own.
        mark = outlined.marks[number + 1] if found[number].is_word("elseif") else outlined.marks[number]
        mutants.append(Mutant(file, line, function, text, name, mark, start, end, replacement))
    return tuple(mutants), outlined


_Change = tuple[int, int, int, str, str]


def _changes(found: Sequence[Token], source: str) -> Iterator[_Change]:
    """Give (number of the token, start, end, mutation, replacement) for each change, none twice in effect."""
    same_as_negated: set[tuple[int, str]] = set()
    for number, token in enumerate(found):
        if token.is_word("if", "elseif", "while"):
            end = condition_end(tuple(found), number)
            inside = range(number + 1, end)
            start, stop = found[number + 1].start, found[end - 1].end
            condition = source[start:stop]
            yield number, start, stop, f"{token.text} negated", f"not ({condition})"
            if not token.is_word("while"):
                yield number, start, stop, f"{token.text} always true", f"({condition}) or true"
            yield number, start, stop, f"{token.text} always false", f"({condition}) and false"
            if (one := _whole_condition(found, inside)) is not None:
                same_as_negated.add(one)
    for number, token in enumerate(found):
        for replacement in _SWAPS.get(token.text, ()) if token.kind != "string" else ():
            if (number, replacement) not in same_as_negated:
                yield number, token.start, token.end, f"`{token.text}` → `{replacement}`", replacement
        if token.is_word("not") and (number, "") not in same_as_negated:
            yield number, token.start, token.end, "`not` dropped", ""


def _whole_condition(found: Sequence[Token], inside: range) -> tuple[int, str] | None:
    """Give the one change inside a condition that would be the same as negating it, if there is one."""
    if any(found[number].is_word("and", "or") for number in inside):
        return None
    if found[inside[0]].is_word("not") and not any(found[number].text in _TURNED for number in inside):
        return inside[0], ""
    compared = [number for number in inside if found[number].text in _TURNED and found[number].kind == "operator"]
    if len(compared) == 1 and not any(found[number].is_word("not") for number in inside):
        return compared[0], _TURNED[found[compared[0]].text]
    return None
