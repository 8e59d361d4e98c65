"""What differs between two settings: which values, which rules they make, and how late pages can come? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches, ndiff
from typing import Any

import yaml

from rules.certificate import certify
from rules.generate import render_rules
from sluicegate.errors import UsageError
from sluicegate.setting_rows import SettingRow, setting_rows
from sluicegate.settings import Settings, parse

_RULE = re.compile(r" +- (?:alert|record): \"(?P<name>[^\"]+)\"")
_GROUP = re.compile(r" +- name: \"(?P<name>[^\"]+)\"")
_CONTRACT = "contract"


@dataclass(frozen=True, slots=True)
class Change:
    """Hold what one thing is before and after; empty where it is not there."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Hold the lines of one rule, or of a group's head, that go (`- `) and come (`+ `)."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold all that differs; `lateness` is the worst case from signal to webhook of pages where it changes."""

    settings: tuple[Change, ...]
    rules: tuple[RuleChange, ...]
    lateness: tuple[Change, ...]

    @classmethod
    def between(cls, before: Settings, after: Settings) -> Difference:
        """Compare two settings and the rules that they make."""
        return cls(
            tuple(_changes(_named(setting_rows(before, None)), _named(setting_rows(after, None)))),
            tuple(_rule_changes(_blocks(render_rules(before)), _blocks(render_rules(after)))),
            tuple(_changes(_lateness(before), _lateness(after))),
        )


def _named(rows: Sequence[SettingRow]) -> dict[str, str]:
    return {row.name: row.here for row in rows}


def _lateness(settings: Settings) -> dict[str, str]:
    return {one.alert.name.value: f"{one.worst_s:g} s" for one in certify(settings)}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name, ""), after.get(name, ""))


def _blocks(text: str) -> dict[str, list[str]]:
    """Cut a rule file up by its rules; a group's name and interval are a block too."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if found := _RULE.match(line) or _GROUP.match(line):
            lines = blocks.setdefault(found["name"], [])
        if line.strip():
            lines.append(line)
    return blocks


def _rule_changes(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> Iterator[RuleChange]:
    for name in dict.fromkeys([*before, *after]):
        changed = [line for line in ndiff(before.get(name, []), after.get(name, [])) if line[:2] in {"- ", "+ "}]
        if changed:
            yield RuleChange(name, tuple(f"{line[:2]}{line[2:].strip()}" for line in changed))


def with_values(settings: Settings, given: Sequence[str]) -> Settings:
    """Put values such as `thresholds.reject_age_p95_seconds=17` over settings; the contract's need no `contract.`.

    Raises UsageError where a setting does not exist or has no such value.
    """
    body = settings.model_dump(mode="json")
    for one in given:
        name, found, text = one.partition("=")
        if not found:
            raise UsageError(
                f"--set {one!r} has no value.", "Write for example --set thresholds.reject_age_p95_seconds=17."
            )
        _put(body, _place(settings, name.strip()), text)
    return parse(body, "--set")


def _place(settings: Settings, name: str) -> list[str]:
    """Find a setting by its name; raises UsageError with the one that it may have been."""
    known = [row.name for row in setting_rows(settings, None)]
    for full in (name, f"{_CONTRACT}.{name}"):
        if full in known:
            return full.split(".")
    short = [one.removeprefix(f"{_CONTRACT}.") for one in known]
    near = get_close_matches(name, [*short, *known], n=1)
    hint = f"Did you mean {near[0]}?" if near else "`sluicegate queue settings` lists every setting."
    raise UsageError(f"--set: there is no setting {name!r}.", hint)


def _put(body: dict[str, Any], place: Sequence[str], text: str) -> None:
    *outer, last = place
    for part in outer:
        body = body[part]
    try:
        body[last] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(
            f"--set {'.'.join(place)}: {text!r} is no value.", "Write it as in the settings file."
        ) from error
