"""A rate of something that is no counter, a slope of one, or too short a window."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import OF_COUNTERS, OF_GAUGES, calls, is_counter
from rules.lint.rule_file import Rule
from rules.promql import number

_LEAST_SCRAPES = 4


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find rates of gauges, slopes of counters, and windows that one lost scrape leaves without two samples."""
    if rule.tree is None:
        return
    least_s = _LEAST_SCRAPES * around.settings.monitoring.scrape_interval_s
    for call in calls(rule.tree, OF_COUNTERS | OF_GAUGES):
        names = [one.name for one in call.selectors()]
        if call.name in OF_COUNTERS and not all(map(is_counter, names)):
            yield f"`{call.name}` is for counters, and {', '.join(names)} is none: `deriv` and `delta` are for gauges"
        if call.name in OF_GAUGES and any(map(is_counter, names)):
            yield f"`{call.name}` is for gauges, and {', '.join(names)} is a counter: a reset would look like a fall"
        for window in call.walk():
            if window.kind in ("range", "subquery") and window.range_s < least_s:
                length = number(window.range_s)
                yield f"the window of `{call.name}` is {length} s, under four scrapes ({number(least_s)} s)"


CHECK = Check(
    "promql-rate",
    "`rate`, `increase` and `irate` are for counters, `deriv`, `delta` and `predict_linear` for gauges, and their"
    " window holds at least four scrapes.",
    "rate(queue_age_p95_seconds[5m]) > 1",
    "deriv(queue_age_p95_seconds[5m]) > 1",
    each_rule(find),
)
