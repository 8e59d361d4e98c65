"""An absence that one lost scrape makes true."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.expressions import calls
from rules.lint.rule_file import Rule
from rules.promql import number

_LEAST_SCRAPES = 2


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find `absent` with a `for` that one or two lost scrapes fill."""
    least_s = _LEAST_SCRAPES * around.settings.monitoring.scrape_interval_s
    absences = calls(rule.tree, frozenset({"absent"})) if rule.tree and rule.alert else ()
    if any(absences) and (rule.for_s or 0) < least_s:
        yield f"`absent` with `for` under two scrapes ({number(least_s)} s): one that is lost would page"


CHECK = Check(
    "alert-absent",
    "`absent` needs a `for` of at least two scrapes.",
    'absent(up{job="sluicegate"})',
    'absent(up{job="sluicegate"}) with `for: 6s`',
    each_rule(find),
)
