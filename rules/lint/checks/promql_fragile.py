"""An alert on the top few, whose members change from one evaluation to the next."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find `topk` and `bottomk` in alerts: each change of rank ends one alert and begins another."""
    del around
    for node in rule.tree.walk() if rule.tree and rule.alert else ():
        if node.kind == "aggregate" and node.name in ("topk", "bottomk"):
            yield f"`{node.name}` in an alert begins `for` anew whenever two series change places"


CHECK = Check(
    "promql-fragile",
    "An alert must not stand on `topk` or `bottomk`: every change of rank ends one alert and begins another.",
    "topk(3, queue_age_p95_seconds) > 20",
    "queue_age_p95_seconds > 20",
    each_rule(find),
)
