"""Say why no test notices a mutant: because it is no other rule, or because nobody has written the test yet."""

from __future__ import annotations

from rules.mutation.mutants import Mutant

_UNKNOWN = "no test tells the two apart yet"


def reason(mutant: Mutant) -> str:
    """Give the reason why a mutant survives."""
    if mutant.record is not None:
        return "two exporters show the same but for a moment, and the figure only guards or dates another"
    return _UNKNOWN
