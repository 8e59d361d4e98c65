"""A text that changes with every evaluation, or asks for what is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import kept_labels
from rules.lint.rule_file import Rule

_LABEL = re.compile(r"\$labels\.(\w+)")
_NEWER = ("toDuration", "now", "urlQueryEscape")


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find values in summaries, labels that the expression has lost, and functions that Prometheus 2.42 lacks."""
    del around
    if rule.alert and "$value" in rule.annotations.get("summary", ""):
        yield "the summary holds the value: a repeated notification should say the same words"
    kept = kept_labels(rule.tree) if rule.tree else None
    for text in rule.annotations.values():
        for label in _LABEL.findall(text):
            if kept is not None and label not in kept and label not in rule.labels:
                yield f"the text asks for the label {label}, which the expression has lost: it would be empty"
        yield from (f"the text uses `{name}`, unknown to Prometheus 2.42" for name in _NEWER if f"| {name}" in text)


CHECK = Check(
    "alert-template",
    "A summary holds no value, and a text asks only for labels that the expression keeps: others are rendered as"
    " nothing, and no tool says so.",
    "sum by (queue) (x) > 1 with {{ $labels.class }}",
    "sum by (queue, class) (x) > 1 with {{ $labels.class }}",
    each_rule(find),
)
