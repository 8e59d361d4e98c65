"""Run every check over rule files, and leave out what a rule has a waiver for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rules.lint.check import Finding, Surroundings
from rules.lint.checks import CHECKS
from rules.lint.rule_file import Rule, RuleFile, read


@dataclass(frozen=True, slots=True)
class Report:
    """Hold what is refused, and what would be but for a waiver: (finding, its reason)."""

    refused: tuple[Finding, ...]
    waived: tuple[tuple[Finding, str], ...]


def lint(paths: Sequence[Path], around: Surroundings) -> Report:
    """Lint these files together. Raises UsageError where one can't be read."""
    files = [read(path) for path in paths]
    by_place = {(file.path, rule.line): rule for file in files for rule in file.rules()}
    found = [replace(one, check=check.name) for check in CHECKS for one in check.find(files, around)]
    found += _unknown_waivers(files)
    found.sort(key=lambda one: (str(one.path), one.line, one.check))
    reasons = [(one, _waiver(by_place.get((one.path, one.line)), one.check)) for one in found]
    return Report(
        tuple(one for one, reason in reasons if not reason), tuple((one, reason) for one, reason in reasons if reason)
    )


def _waiver(rule: Rule | None, check: str) -> str:
    return rule.waivers.get(check, "") if rule is not None else ""


def _unknown_waivers(files: Sequence[RuleFile]) -> list[Finding]:
    """Find waivers of checks that do not exist: a slip of the pen would waive nothing and look as if it did."""
    known = {check.name for check in CHECKS}
    return [
        Finding(file.path, rule.line, rule.title, f"the waiver names {name}, which is no check", "waiver")
        for file in files
        for rule in file.rules()
        for name in rule.waivers
        if name not in known
    ]
