"""Write an audit log as JSON lines, the chain's ends first, and read it back in the same order of fields. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict

from sluicegate.audit import Ends, Entry

_FORMAT = "sluicegate-audit-1"


class BadExport(ValueError):
    """Say why a text is no export."""


def head_line(queue: str, ends: Ends) -> str:
    """Give the first line: what this is, of which queue, and the chain's two ends."""
    return json.dumps({"format": _FORMAT, "queue": queue, **asdict(ends)})


def entry_line(entry: Entry) -> str:
    """Give one entry as a line; the order of its names is that of its fields, which its hash covers."""
    return json.dumps(dict(entry.fields), ensure_ascii=False)


def read_export(text: str) -> tuple[Ends, tuple[Entry, ...]]:
    """Read an export; raises BadExport with what is wrong."""
    lines = text.splitlines()
    try:
        head, *rest = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise BadExport("a line of it is no JSON, or there is none") from error
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise BadExport(f"its first line does not say {_FORMAT}")
    if not all(isinstance(row, dict) and all(isinstance(value, str) for value in row.values()) for row in rest):
        raise BadExport("an entry of it is not an object of texts")
    try:
        ends = Ends(int(head["number"]), str(head["hash"]), int(head["base_number"]), str(head["base_hash"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadExport("its first line lacks the chain's ends") from error
    return ends, tuple(Entry(tuple(row.items())) for row in rest)
