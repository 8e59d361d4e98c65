"""An alert that leaves its reader alone."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule

_NEEDED = ("summary", "description", "runbook_url", "dashboard_url")


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find alerts that lack what a tired person needs."""
    del around
    for name in _NEEDED if rule.alert else ():
        if not rule.annotations.get(name):
            yield f"the annotation `{name}` is missing"


CHECK = Check(
    "alert-annotations",
    "An alert has a summary, a description, and links to its runbook page and to the dashboard.",
    "summary alone",
    "summary, description, runbook_url, dashboard_url",
    each_rule(find),
)
