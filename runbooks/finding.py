"""Say what a lint found: where, what is wrong, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from runbooks.model import Step

# What a lint yields: the field, the sentence without its full stop, the hint.
Fault = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold what one lint refuses: file and field, one sentence, and a hint."""

    lint: str
    where: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} ({self.lint})."


def field_of(step: Step) -> str:
    """Name a step as it stands in the file."""
    return f"steps[{step.seq - 1}].{step.verb}"
