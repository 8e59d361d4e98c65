"""A division that is no number when nothing happens, where that spreads."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import COMPARISONS, comparisons
from rules.lint.query import Node
from rules.lint.rule_file import Rule

_SPREADS = frozenset({"sum", "avg", "stddev", "stdvar", "quantile"})


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find unguarded divisions below a sum, and those that `!=` would take for a difference."""
    del around
    for node in rule.tree.walk() if rule.tree else ():
        if node.kind == "aggregate" and node.name in _SPREADS and any(map(_is_unguarded, node.walk())):
            yield f"`{node.name}` over a division is no number as soon as one part is 0/0: divide the sums instead"
    for node in comparisons(rule.tree) if rule.tree else ():
        if node.name == "!=" and any(_is_unguarded(part) for side in node.parts for part in side.walk()):
            yield "0/0 is different from every number, so `!=` is true of it: guard the denominator with `> 0`"


def _is_unguarded(node: Node) -> bool:
    if node.kind != "binary" or node.name not in ("/", "%"):
        return False
    below = node.parts[1]
    return below.kind != "number" and not (below.kind == "binary" and below.name in COMPARISONS)


CHECK = Check(
    "promql-nan",
    "0/0 is no number. Below `sum`, `avg` or `quantile` one such part spoils the whole; to `!=` it is a difference."
    " Compared with `<` or `>` it is quiet, which is right.",
    "sum(misses / deadlines) > 0.1",
    "sum(misses) / (sum(deadlines) > 0) > 0.1",
    each_rule(find),
)
