"""A link to a page that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from rules.lint.check import Check, Surroundings, each_rule
from rules.lint.rule_file import Rule


def find(rule: Rule, around: Surroundings) -> Iterator[str]:
    """Find runbook_urls without a file of that name in the folder of pages; without a folder nothing is looked up."""
    url = rule.annotations.get("runbook_url", "")
    if around.runbooks is None or not rule.alert or not url:
        return
    name = urlsplit(url).path.rsplit("/", 1)[-1]
    if not (around.runbooks / name).is_file():
        yield f"its runbook_url leads to {name}, and {around.runbooks} has no such page"


CHECK = Check(
    "runbook-page",
    "Every runbook_url leads to a page in the folder that `--runbooks` names.",
    "runbook_url: …/Gone.md",
    "runbook_url: …/SluicegateQueueAgeHigh.md",
    each_rule(find),
)
