"""An expression that is none."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find what can't be parsed: Prometheus would refuse the whole file."""
    del around
    if rule.tree is None:
        yield f"the expression can't be parsed: {rule.why}"


CHECK = Check(
    "promql-syntax",
    "Every expression must parse. Prometheus refuses a whole file for one that does not.",
    "up ==",
    "up == 0",
    each_rule(find),
)
