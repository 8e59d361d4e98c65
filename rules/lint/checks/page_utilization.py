"""A page about how busy something is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules.alert import Severity
from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule
from sluicegate.telemetry import WORKER_INFLIGHT

_BUSY = re.compile(rf"cpu|memory|_load\\d|saturation|utili[sz]ation|{WORKER_INFLIGHT}")


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find pages that read utilization: it says nothing about deadlines."""
    del around
    if not rule.alert or rule.labels.get("severity") != Severity.PAGE or rule.tree is None:
        return
    for name in dict.fromkeys(one.name for one in rule.tree.selectors() if _BUSY.search(one.name)):
        yield f"the page reads {name}: how busy something is says nothing about deadlines"


CHECK = Check(
    "page-utilization",
    "A page stands on age, slack, forecast, provider failures, duplicates, or the loss of such evidence; never on CPU,"
    " memory or jobs in flight.",
    "node_load1 > 8 with `severity: page`",
    'queue_age_p95_seconds{queue="night"} > 25 with `severity: page`',
    each_rule(find),
)
