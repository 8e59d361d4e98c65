"""An alert that routing and the robot can't read."""

from __future__ import annotations

from collections.abc import Iterator

from rules.alert import Severity, SluicegateAction
from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule
from sluicegate.telemetry import QUEUE_LABEL

_CLOSED = {"severity": tuple(Severity), "sluicegate_action": tuple(SluicegateAction)}


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find alerts without queue, severity or action, values that are none, and values that change while one fires."""
    del around
    if not rule.alert:
        return
    if not rule.labels.get(QUEUE_LABEL):
        yield f"the label `{QUEUE_LABEL}` is missing: inhibition takes two missing labels for equal"
    for name, known in _CLOSED.items():
        if rule.labels.get(name) not in known:
            yield f"the label `{name}` is {rule.labels.get(name)!r}, not one of {', '.join(known)}"
    for name, value in rule.labels.items():
        if "$value" in value or ".Value" in value:
            yield f"the label `{name}` holds the value: each change would begin `for` anew"


CHECK = Check(
    "alert-labels",
    "An alert says its queue, whom it wakes (`severity`) and what Sluicegate does (`sluicegate_action`), from the"
    " closed lists. No label holds the value: every change of it would begin `for` anew.",
    "severity: critical",
    "severity: page",
    each_rule(find),
)
