"""A figure of ours without its queue."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import metric_of
from rules.lint.rule_file import Rule
from sluicegate.telemetry import QUEUE_LABEL, STABLE_FIELDS

_PREFIX = "sluicegate_"


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find selectors of Sluicegate's figures that take every queue's: thresholds belong to one."""
    del around
    for selector in rule.tree.selectors() if rule.tree and rule.alert else ():
        metric = metric_of(selector.name)
        ours = metric in STABLE_FIELDS or metric.startswith(_PREFIX)
        if ours and not any(one.label == QUEUE_LABEL for one in selector.matchers):
            yield f"{selector.name} is asked of every queue at once: name the queue"


CHECK = Check(
    "promql-selector",
    "An alert on Sluicegate's figures must name the queue: thresholds are one queue's, and `absent` must say whose.",
    "queue_age_p95_seconds > 20",
    'queue_age_p95_seconds{queue="night"} > 20',
    each_rule(find),
)
