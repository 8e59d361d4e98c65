"""What a check is: a name, what it says, and a function from files to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rules.lint.rule_file import Rule, RuleFile
from sluicegate.settings import Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Hold what a rule is judged by beside itself: the settings, and the folder of the runbook pages, if any."""

    settings: Settings
    runbooks: Path | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold one finding: where, and what is wrong there in a full sentence."""

    path: Path
    line: int
    rule: str
    text: str
    check: str = ""


# What a check of single rules yields: sentences.
OfRule = Callable[[Rule, Surroundings], Iterator[str]]
OfFiles = Callable[[Sequence[RuleFile], Surroundings], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """Hold one check. `says` is what it asks for and why; `refused` and `allowed` are examples to learn from."""

    name: str
    says: str
    refused: str
    allowed: str
    find: OfFiles


def each_rule(find: OfRule) -> OfFiles:
    """Make a check of every rule by itself."""

    def of_files(files: Sequence[RuleFile], around: Surroundings) -> Iterator[Finding]:
        for file in files:
            for rule in file.rules():
                for text in find(rule, around):
                    yield Finding(file.path, rule.line, rule.title, text)

    return of_files
