"""A record that nobody makes, or that is made too late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.lint.check import Check, Finding, Surroundings
from rules.lint.rule_file import RuleFile


def find(files: Sequence[RuleFile], around: Surroundings) -> Iterator[Finding]:
    """Find records that no file makes, and alerts that read one of another group or of later in their own."""
    del around
    made = {rule.record for file in files for rule in file.rules() if rule.record}
    for file in files:
        for group in file.groups:
            before: set[str] = set()
            for rule in group.rules:
                names = dict.fromkeys(
                    one.name for one in (rule.tree.selectors() if rule.tree else ()) if ":" in one.name
                )
                for name in names:
                    if name not in made:
                        yield Finding(
                            file.path, rule.line, rule.title, f"nobody makes the record {name}: it never fires"
                        )
                    elif name not in before:
                        text = f"the record {name} is not made before it in its group: it is an evaluation late"
                        yield Finding(file.path, rule.line, rule.title, text)
                before.add(rule.record)


CHECK = Check(
    "rule-dependency",
    "A record that a rule reads is made by one of the files, in the same group and before it: from another group it"
    " comes up to an evaluation late.",
    "an alert on `queue:age:max`, recorded in another group",
    "the record, then the alert, in one group",
    find,
)
