"""Read a rule file into values, with the line and the waivers of every rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from rules.lint.query import Node, NotPromql, parsed
from sluicegate.errors import UsageError

# In a comment inside a rule, or between it and the one before: the check, and why it may.
_WAIVER = re.compile(r"#\s*sluicegate: allow ([a-z-]+)[ \t]+(\S.*)")
_DURATION = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?")
_UNITS_S = (365 * 86_400, 7 * 86_400, 86_400, 3600, 60, 1, 0.001)


@dataclass(frozen=True, slots=True)
class Rule:
    """Hold one rule as it is written; `tree` is None where its expression can't be parsed, and `why` says so."""

    alert: str
    record: str
    text: str
    tree: Node | None
    why: str
    line: int
    for_s: float | None
    keep_s: float | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    waivers: Mapping[str, str]

    @property
    def title(self) -> str:
        return self.alert or self.record


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Hold one group; its interval is None where the server's counts."""

    name: str
    interval_s: float | None
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class RuleFile:
    """Hold one file; `faults` are what its shape is wrong in, by line."""

    path: Path
    groups: tuple[RuleGroup, ...]
    faults: tuple[tuple[int, str], ...] = field(default=())

    def rules(self) -> Iterator[Rule]:
        return (rule for group in self.groups for rule in group.rules)


def seconds(text: str) -> float | None:
    """Give a Prometheus duration in seconds, None where it is none."""
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        return None
    return sum(int(part) * unit for part, unit in zip(found.groups(), _UNITS_S, strict=True) if part)


def read(path: Path) -> RuleFile:
    """Read one file: a Prometheus rule file, or a PrometheusRule with the same below `spec`.

    Raises UsageError where it can't be read or is no rule file at all.
    """
    try:
        text = path.read_text("utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path} can't be read: {getattr(error, 'strerror', None) or 'it is no text'}.") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML.", str(error)) from error
    return _Reader(path, text.splitlines()).file(root)


class _Reader:
    def __init__(self, path: Path, lines: Sequence[str]) -> None:
        self._path = path
        self._lines = lines
        self._faults: list[tuple[int, str]] = []
        self._read_to = 0

    def file(self, root: yaml.Node | None) -> RuleFile:
        top = self._fields(root)
        below = self._fields(top["spec"]) if "spec" in top else top
        if not isinstance(below.get("groups"), yaml.SequenceNode):
            raise UsageError(f"{self._path} is no rule file: it has no list of groups.")
        groups = tuple(self._group(one) for one in below["groups"].value)
        return RuleFile(self._path, groups, tuple(self._faults))

    def _group(self, node: yaml.Node) -> RuleGroup:
        fields = self._fields(node)
        rules = fields.get("rules")
        items = rules.value if isinstance(rules, yaml.SequenceNode) else []
        interval = self._text(fields.get("interval"))
        return RuleGroup(self._text(fields.get("name")), seconds(interval), tuple(self._rule(one) for one in items))

    def _rule(self, node: yaml.Node) -> Rule:
        fields = self._fields(node)
        text = self._text(fields.get("expr"))
        tree, why = None, ""
        try:
            tree = parsed(text)
        except NotPromql as error:
            why = str(error)
        start, self._read_to = self._read_to, node.end_mark.line
        return Rule(
            alert=self._text(fields.get("alert")),
            record=self._text(fields.get("record")),
            text=text,
            tree=tree,
            why=why,
            line=node.start_mark.line + 1,
            for_s=self._duration(fields.get("for")),
            keep_s=self._duration(fields.get("keep_firing_for")),
            labels=self._strings(fields.get("labels")),
            annotations=self._strings(fields.get("annotations")),
            waivers={
                found[1]: found[2] for line in self._lines[start : self._read_to] if (found := _WAIVER.search(line))
            },
        )

    def _fields(self, node: yaml.Node | None) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            return {}
        found: dict[str, yaml.Node] = {}
        for name, value in node.value:
            if name.value in found:
                self._fault(name, f"the key `{name.value}` stands twice: only the last would count")
            found[name.value] = value
        return found

    def _duration(self, node: yaml.Node | None) -> float | None:
        if node is None:
            return None
        length = seconds(self._text(node))
        if length is None:
            self._fault(node, f"`{self._text(node)}` is no duration")
        return length

    def _strings(self, node: yaml.Node | None) -> dict[str, str]:
        fields = self._fields(node)
        for name, value in fields.items():
            if value.tag != "tag:yaml.org,2002:str":
                self._fault(value, f"the value of `{name}` is no string: quote it")
        return {name: self._text(value) for name, value in fields.items()}

    @staticmethod
    def _text(node: yaml.Node | None) -> str:
        return str(node.value) if isinstance(node, yaml.ScalarNode) else ""

    def _fault(self, node: yaml.Node, text: str) -> None:
        self._faults.append((node.start_mark.line + 1, text))
