"""Write an expression that reads records as one that reads what the records are taken from. Pure.

For histories from before the rules were loaded. A range over a record becomes a subquery, whose steps lie at whole
intervals, not at the evaluations: over windows of a few samples it can differ from the record by one of them.
"""

from __future__ import annotations

import re

from rules.promql import duration
from rules.scope import Scope
from sluicegate.records import RECORDS

_BY_NAME = {record.name: record for record in RECORDS}
_SELECTED = re.compile(
    r"(?P<name>[a-z_]+:[a-z0-9_]+:[a-z]+)\{(?P<matchers>[^}]*)\}"
    r"(?:\[(?P<range>\w+)\])?(?P<offset> offset \w+)?"
)


def expand(expression: str, scope: Scope) -> str:
    """Put each record's own expression in its place, with its matchers, range and offset moved inside."""

    def expanded(found: re.Match[str]) -> str:
        record = _BY_NAME.get(found["name"])
        if record is None:
            return found[0]  # somebody else's record, in an expression to compare with
        # Labels of a record are labels of what it is taken from, with the same values.
        selector = f"{scope.selector(record)},{found['matchers']}"
        offset = found["offset"] or ""
        if found["range"] is None:
            inner = record.expression(selector)
            return f"({inner[:-1]}{offset}))" if offset else f"({inner})"
        step = duration(scope.timing.evaluation_s)
        return f"({record.expression(selector)})[{found['range']}:{step}]{offset}"

    return _SELECTED.sub(expanded, expression)
