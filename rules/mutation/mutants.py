"""Make mutants of an alert: one slip of the hand each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rules.alert import Alert, Severity, SluicegateAction
from rules.promql import duration, number
from sluicegate.records import Operation, Record

_COMPARED = re.compile(r"(?P<op>>=|<=|==|!=|>|<)(?P<space> )(?P<number>-?\d+(?:\.\d+)?)(?![\w.\[])")
_COMPARATOR = re.compile(r"(?<= )(>=|<=|==|!=|>|<)(?= )")
_WINDOW = re.compile(r"(?:(?<=\[)|(?<=offset ))(\d+)(ms|s)")
_GUARD = re.compile(r"^( *)(and|unless)( on \([^)]*\))? (?P<rest>.*)$")
_SWAPPED = {">=": (">", "<"), ">": (">=", "<="), "<": ("<=", ">="), "<=": ("<", ">"), "==": ("!=",), "!=": ("==",)}
_BRANCH = re.compile(r"^ *or (?P<rest>.*)$")
# Figures that are measured: a hundredth more is another threshold. The others are counts, whose next is one more.
_MEASURED = re.compile(r"_seconds|_rate|_threshold| / ")


@dataclass(frozen=True, slots=True)
class Mutant:
    """Hold one wrong alert: the operator that made it, what it changed, and the record that it has wrong, if any."""

    operator: str
    change: str
    alert: Alert
    record: tuple[Record, str] | None = None


def mutants(alert: Alert, records: tuple[Record, ...], step_s: float) -> Iterator[Mutant]:
    """Give every mutant of an alert, in an order that stays; `step_s` is the pace of its tests."""
    yield from _thresholds(alert)
    yield from _comparators(alert)
    yield from _guards(alert)
    yield from _windows(alert)
    yield from _durations(alert, step_s)
    yield from _labels(alert)
    yield Mutant(
        "condition", "never fires", replace(alert, expression=f"({alert.expression}) and on () (vector(1) > 2)")
    )
    for record in records:
        yield from _records(alert, record)


def _thresholds(alert: Alert) -> Iterator[Mutant]:
    for found in _COMPARED.finditer(alert.expression):
        value = float(found["number"])
        line = alert.expression[alert.expression.rfind("\n", 0, found.start()) + 1 : found.start()]
        for other in _others(value, measured=bool(_MEASURED.search(line))):
            text = _put(alert.expression, found.start("number"), found.end("number"), number(other))
            change = f"{found['op']} {found['number']} to {number(other)} after `{_tail(line)}`"
            yield Mutant("threshold", change, replace(alert, expression=text))


def _others(value: float, *, measured: bool) -> tuple[float, ...]:
    if not measured:
        return (value + 1, value - 1)
    if value == 0:
        return (1, -1)
    return (value * 1.01, value * 0.99, value * 2, value / 2)


def _comparators(alert: Alert) -> Iterator[Mutant]:
    for found in _COMPARATOR.finditer(alert.expression):
        line = alert.expression[alert.expression.rfind("\n", 0, found.start()) + 1 : found.start()]
        for other in _SWAPPED[found[0]]:
            text = _put(alert.expression, found.start(), found.end(), other)
            yield Mutant("comparator", f"{found[0]} to {other} after `{_tail(line)}`", replace(alert, expression=text))


def _guards(alert: Alert) -> Iterator[Mutant]:
    lines = alert.expression.split("\n")
    for index, line in enumerate(lines):
        dropped = "\n".join((*lines[:index], *lines[index + 1 :]))
        if _BRANCH.match(line):
            yield Mutant("branch dropped", _tail(line), replace(alert, expression=dropped))
        found = _GUARD.match(line)
        if found is None:
            continue
        yield Mutant("guard dropped", _tail(line), replace(alert, expression=dropped))
        other = "unless" if found[2] == "and" else "and"
        turned = "\n".join((*lines[:index], line.replace(found[2], other, 1), *lines[index + 1 :]))
        yield Mutant("guard turned", f"{found[2]} to {other}: {_tail(line)}", replace(alert, expression=turned))


def _windows(alert: Alert) -> Iterator[Mutant]:
    """Change all windows of one length at once: they belong together."""
    for text in dict.fromkeys(found[0] for found in _WINDOW.finditer(alert.expression)):
        found = _WINDOW.fullmatch(text) or re.fullmatch(r"(\d+)(ms|s)", text)
        assert found is not None  # noqa: S101 (both patterns end alike)
        length = int(found[1]) / (1000 if found[2] == "ms" else 1)
        for factor in (2, 0.5):
            other = duration(length * factor)
            changed = re.sub(rf"(?:(?<=\[)|(?<=offset )){text}\b", other, alert.expression)
            yield Mutant("window", f"{text} to {other}", replace(alert, expression=changed))


def _durations(alert: Alert, step: float) -> Iterator[Mutant]:
    for value in (alert.for_s + step, *((alert.for_s - step,) if alert.for_s >= step else ())):
        yield Mutant("for", f"{duration(alert.for_s)} to {duration(value)}", replace(alert, for_s=value))
    keep = alert.keep_firing_for_s
    for value in (keep + step, *((keep - step,) if keep > step else ()), *((0.0,) if keep else ())):
        yield Mutant("keep", f"{duration(keep)} to {duration(value)}", replace(alert, keep_firing_for_s=value))


def _labels(alert: Alert) -> Iterator[Mutant]:
    for severity in Severity:
        if severity is not alert.severity:
            yield Mutant("severity", f"{alert.severity} to {severity}", replace(alert, severity=severity))
    for action in SluicegateAction:
        if action is not alert.action:
            yield Mutant("action", f"{alert.action} to {action}", replace(alert, action=action))
    yield Mutant("label", "signal", replace(alert, signal=f"{alert.signal}_other"))
    yield Mutant("label", "queue", replace(alert, queue=f"{alert.queue}-other"))


def _records(alert: Alert, record: Record) -> Iterator[Mutant]:
    other = Operation.MIN if record.operation is Operation.MAX else Operation.MAX
    for operation in (other.value, "sum"):
        yield Mutant("record", f"{record.name}: {record.operation} to {operation}", alert, (record, operation))


def _put(text: str, start: int, end: int, other: str) -> str:
    return text[:start] + other + text[end:]


def _tail(text: str) -> str:
    return text.strip()[-70:]
