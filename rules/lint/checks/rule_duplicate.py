"""The same rule twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.lint.check import Check, Finding, Surroundings
from rules.lint.rule_file import RuleFile


def find(files: Sequence[RuleFile], around: Surroundings) -> Iterator[Finding]:
    """Find two rules of one name and the same labels: they write over each other, or tell the same twice."""
    del around
    seen: dict[tuple[object, ...], str] = {}
    for file in files:
        for rule in file.rules():
            key = (rule.alert, rule.record, tuple(sorted(rule.labels.items())), rule.text if rule.alert else "")
            if key in seen:
                yield Finding(file.path, rule.line, rule.title, f"the same rule stands at {seen[key]} already")
            seen.setdefault(key, f"{file.path}:{rule.line}")


CHECK = Check(
    "rule-duplicate",
    "No record is made twice under the same labels, and no alert stands twice.",
    "record: queue:age:max, twice",
    "record: queue:age:max, once",
    find,
)
