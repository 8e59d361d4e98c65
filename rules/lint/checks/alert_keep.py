"""A keep that ends before the absence of figures is told."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule
from rules.promql import number
from rules.scope import Timing


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find keeps shorter than it takes to say that figures are gone: it would end as if all were well."""
    told_s = Timing.of(around.settings).absent_for_s + around.settings.monitoring.evaluation_interval_s
    if rule.alert and rule.keep_s is not None and rule.keep_s < told_s:
        yield f"its keep of {number(rule.keep_s)} s ends before absent figures are told, after {number(told_s)} s"


CHECK = Check(
    "alert-keep",
    "A `keep_firing_for` must outlast the time until the alert for absent figures fires: figures that vanish must never"
    " look like a recovery.",
    "keep_firing_for: 5s",
    "keep_firing_for: 30s",
    each_rule(find),
)
