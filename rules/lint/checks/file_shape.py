"""A key that stands twice, a value that is no string, a duration that is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.lint.check import Check, Finding, Surroundings
from rules.lint.rule_file import RuleFile


def find(files: Sequence[RuleFile], around: Surroundings) -> Iterator[Finding]:
    """Find what YAML lets pass and Prometheus reads otherwise than it was meant."""
    del around
    for file in files:
        for line, text in file.faults:
            yield Finding(file.path, line, "", text)


CHECK = Check(
    "file-shape",
    "A key must not stand twice, labels and annotations must be strings (`no` and `1` are none unless quoted), and a"
    " duration must be one. YAML lets all of it pass.",
    "severity: 1",
    'severity: "1"',
    find,
)
