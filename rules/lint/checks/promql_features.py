"""A function that the oldest Prometheus we speak to does not have."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule

_NEWER = frozenset(
    {"mad_over_time", "sort_by_label", "sort_by_label_desc", "info", "limitk", "limit_ratio", "ts_of_max_over_time"}
)


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find functions and aggregations that Prometheus 2.42 lacks."""
    del around
    for node in rule.tree.walk() if rule.tree else ():
        if node.kind in ("call", "aggregate") and node.name in _NEWER:
            yield f"`{node.name}` is unknown to Prometheus 2.42, the oldest that is supported"


CHECK = Check(
    "promql-features",
    "Functions and aggregations must be there in Prometheus 2.42 already.",
    "limitk(3, up) == 0",
    "topk(3, up) == 0",
    each_rule(find),
)
