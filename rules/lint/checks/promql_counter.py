"""A counter that is compared as it stands."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import comparisons, is_counter
from rules.lint.query import Node
from rules.lint.rule_file import Rule


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find totals compared with a number: they only grow, so the alert would never end."""
    del around
    for node in comparisons(rule.tree) if rule.tree and rule.alert else ():
        side, other = node.parts
        if other.kind == "number" and (name := _bare_counter(side)):
            yield f"the counter {name} only grows: compare its increase, or its difference from the least of a window"


def _bare_counter(node: Node) -> str:
    if node.kind == "selector" and is_counter(node.name):
        return node.name
    if node.kind == "aggregate":
        return _bare_counter(node.parts[0])
    return ""


CHECK = Check(
    "promql-counter",
    "An alert must not compare a counter with a number: it would fire one day and never end.",
    "sluicegate_blocked_total > 5",
    "increase(sluicegate_blocked_total[10m]) > 5",
    each_rule(find),
)
