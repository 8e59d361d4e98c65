"""A page that comes when the deadline is over."""

from __future__ import annotations

from collections.abc import Iterator

from rules.alert import Severity
from rules.certificate import DELIVERY_S, LEAST_LEFT
from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule
from rules.promql import number


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find pages whose `for`, with the settings' intervals, leaves too little of the shortest deadline."""
    if not rule.alert or rule.labels.get("severity") != Severity.PAGE:
        return
    monitoring, deadline_s = around.settings.monitoring, around.settings.contract.shortest_deadline_s
    stages_s = 2 * monitoring.scrape_interval_s + monitoring.evaluation_interval_s + DELIVERY_S
    worst_s = stages_s + (rule.for_s or 0) + max(monitoring.group_wait_s, monitoring.group_interval_s)
    if worst_s > deadline_s * (1 - LEAST_LEFT):
        yield f"the page can come {number(worst_s)} s after its signal, of a deadline of {number(deadline_s)} s"


CHECK = Check(
    "page-latency",
    "A page arrives while a quarter of the shortest deadline is left, by the settings' intervals and its `for`;"
    " `sluicegate rules certify` adds up every term. A page that waits by design says so by a waiver.",
    "for: 60s",
    "for: 4s",
    each_rule(find),
)
