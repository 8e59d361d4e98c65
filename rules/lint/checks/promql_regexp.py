"""A regular expression that is none, or has anchors that are there anyway."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule

_SPECIAL = frozenset(".*+?()[]{}|\\^$")


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find matchers that say less, or more, than they mean."""
    del around
    for selector in rule.tree.selectors() if rule.tree else ():
        for one in selector.matchers:
            if one.op not in ("=~", "!~"):
                continue
            if not _SPECIAL & set(one.value):
                yield f'`{one.label}{one.op}"{one.value}"` has nothing to match: write `{one.op[0]}`, or `!=`'
            elif one.value.startswith("^") or (one.value.endswith("$") and not one.value.endswith("\\$")):
                yield f'`{one.label}{one.op}"{one.value}"` is anchored at both ends anyway'


CHECK = Check(
    "promql-regexp",
    "A regular expression must have something to match, and needs no anchors: Prometheus matches the whole value.",
    'up{job=~"api"} == 0',
    'up{job=~"api|web"} == 0',
    each_rule(find),
)
