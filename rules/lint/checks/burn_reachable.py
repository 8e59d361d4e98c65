"""A burn rate that can never be reached."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import comparisons
from rules.lint.rule_file import Rule
from rules.promql import number


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find shares of a counter's increase compared with 1 or more: factor × budget is past everything."""
    del around
    for node in comparisons(rule.tree) if rule.tree and rule.alert else ():
        side, bound = node.parts
        is_share = side.kind == "binary" and side.name == "/" and any(one.name == "increase" for one in side.walk())
        if is_share and node.name in (">", ">=") and bound.kind == "number" and bound.number >= 1:
            yield f"a share of misses can't be over {number(bound.number)}: the tier never fires"


CHECK = Check(
    "burn-reachable",
    "A tier's factor times the budget must be under 1, or it can never fire: 14.4 × 10 % is 144 %.",
    "sum(increase(missed_total[1h])) / sum(increase(deadlines_total[1h])) > 1.44",
    "sum(increase(missed_total[1h])) / sum(increase(deadlines_total[1h])) > 0.144",
    each_rule(find),
)
