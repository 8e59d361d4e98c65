"""A slope over a window in which the deadline passes."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import calls, label_of
from rules.lint.rule_file import Rule
from rules.promql import number
from sluicegate.telemetry import CLASS_LABEL

_SLOPES = frozenset({"deriv", "predict_linear"})


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find slopes over more than half the deadline: a stall would be told when it is over."""
    contract = around.settings.contract
    for call in calls(rule.tree, _SLOPES) if rule.tree and rule.alert else ():
        names = [label_of(one, CLASS_LABEL) or "" for one in call.selectors()]
        deadlines = [contract.classes[name].deadline_s for name in names if name in contract.classes]
        half_s = min(deadlines, default=contract.shortest_deadline_s) / 2
        for window in call.walk():
            if window.kind in ("range", "subquery") and window.range_s > half_s:
                length = number(window.range_s)
                yield f"the window of `{call.name}` is {length} s, over half the deadline ({number(half_s)} s)"


CHECK = Check(
    "forecast-window",
    "The window of `deriv` and `predict_linear` is at most half the class's deadline; a longer one sees the stall when"
    " it is too late.",
    "deriv(slack[5m]) < -0.5",
    "deriv(slack[30s]) < -0.5",
    each_rule(find),
)
