"""Two sides matched on a label that one of them has lost."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import kept_labels
from rules.lint.rule_file import Rule


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find matchings on labels that an aggregation has taken away: they match nothing, or strangers."""
    del around
    for node in rule.tree.walk() if rule.tree else ():
        if node.kind != "binary" or node.labels is None or node.excluding:
            continue
        for side in node.parts:
            kept = kept_labels(side)
            lost = [label for label in node.labels if kept is not None and label not in kept]
            if lost and side.kind != "number":
                yield f"`{node.name} on ({', '.join(node.labels)})`: one side has lost the label {', '.join(lost)}"


CHECK = Check(
    "promql-impossible",
    "Both sides of `on (…)` must still have its labels. A label lost on one side matches nothing; lost on both,"
    " strangers.",
    "a > 1 unless on (queue) sum by (job) (b) == 0",
    "a > 1 unless on (queue) sum by (queue) (b) == 0",
    each_rule(find),
)
