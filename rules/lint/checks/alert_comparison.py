"""An alert without a condition."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import calls, comparisons
from rules.lint.rule_file import Rule

_ABSENCE = frozenset({"absent", "absent_over_time"})


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find alerts that fire as soon as there is a sample, whatever its value."""
    del around
    if rule.alert and rule.tree and not any(comparisons(rule.tree)) and not any(calls(rule.tree, _ABSENCE)):
        yield "the alert has no condition: it fires as long as there is a sample"


CHECK = Check(
    "alert-comparison",
    "An alert needs a comparison or `absent`. One that is to fire always says so by a waiver.",
    "queue_age_p95_seconds",
    "queue_age_p95_seconds > 20",
    each_rule(find),
)
