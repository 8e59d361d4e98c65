"""A group that looks too seldom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.lint.check import Check, Finding, Surroundings
from rules.lint.rule_file import RuleFile
from rules.promql import number

_MOST_S = 300.0


def find(files: Sequence[RuleFile], around: Surroundings) -> Iterator[Finding]:
    """Find groups with an interval over five minutes: samples are gone by then."""
    del around
    for file in files:
        for group in file.groups:
            if group.interval_s is not None and group.interval_s > _MOST_S:
                line = group.rules[0].line if group.rules else 1
                text = f"the group is evaluated every {number(group.interval_s)} s: after five minutes a sample is gone"
                yield Finding(file.path, line, group.name, text)


CHECK = Check(
    "group-interval",
    "A group is evaluated at least every five minutes; Prometheus forgets a sample after that time.",
    "interval: 10m",
    "interval: 2s",
    find,
)
