"""Runbook files that a test changes in one place."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import yaml

from runbooks.document import parse_document
from runbooks.model import Runbook
from runbooks.reading import read_runbook

Change = Callable[[dict[str, Any]], None]


def shipped(name: str) -> dict[str, Any]:
    """Give a shipped runbook as plain values."""
    body: dict[str, Any] = yaml.safe_load(files("runbooks").joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    return body


def changed(change: Change, name: str = "drain-and-recover") -> Runbook:
    """Give a shipped runbook after one change, read but past no lint."""
    body = shipped(name)
    change(body)
    return read(body)


def read(body: dict[str, Any]) -> Runbook:
    """Read plain values as a file named mine.yaml."""
    text = yaml.safe_dump(body, sort_keys=False, allow_unicode=True)
    return read_runbook(parse_document(text.encode(), "mine.yaml"), "mine.yaml")


def step(body: dict[str, Any], verb: str) -> dict[str, Any]:
    """Give a step's parameters by verb."""
    found: dict[str, Any] = next(one[verb] for one in body["steps"] if verb in one)
    return found


def without(body: dict[str, Any], *verbs: str) -> None:
    """Take steps out."""
    body["steps"] = [one for one in body["steps"] if not set(one) & set(verbs)]


def swapped(body: dict[str, Any], first: str, second: str) -> None:
    """Let two steps change places."""
    order = [next(iter(one)) for one in body["steps"]]
    at, to = order.index(first), order.index(second)
    body["steps"][at], body["steps"][to] = body["steps"][to], body["steps"][at]
