"""Parse quantities with their unit, and write them back: `10s`, `2m`, `500ms`, `5%`, `10, 50, 100`. Pure.

Each parser raises ValueError with the bound as its text; the caller knows file and field.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sluicegate.contract import MOST_RAMP_STEPS

_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
LONGEST_S = 7 * 86_400


def duration_s(text: str) -> float:
    """Give seconds; a unit (ms, s, m, h) is required, and the length lies above 0 and at most 7 days."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a duration with a unit such as 500ms, 10s, 2m or 1h")
    seconds = Decimal(match[1]) * _SECONDS[match[2]]
    if not 0 < seconds <= LONGEST_S:
        raise ValueError("not above 0s and at most 168h")
    return float(seconds)


def ratio(text: str) -> float:
    """Give 0..1 from a percentage such as `5%` or a plain number such as `0.05`."""
    digits = text.strip().removesuffix("%")
    if _NUMBER.fullmatch(digits) is None:
        raise ValueError("not a share such as 5% or 0.05")
    value = Decimal(digits) / (100 if text.strip().endswith("%") else 1)
    if value > 1:
        raise ValueError("above 100%")
    return float(value)


def count(text: str) -> int:
    """Give a whole number of things, without a unit."""
    if _COUNT.fullmatch(text.strip()) is None:
        raise ValueError("not a whole number without a unit")
    return int(text.strip())


def percents(text: str) -> tuple[int, ...]:
    """Give the steps of a ramp from a list such as `10, 50, 100`: they grow, from 1 or more, and end at 100."""
    parts = text.split(",")
    if len(parts) > MOST_RAMP_STEPS:
        raise ValueError(f"more than {MOST_RAMP_STEPS} steps")
    try:
        steps = tuple(count(part) for part in parts)
    except ValueError:
        raise ValueError("not a list of whole percentages such as 10, 50, 100") from None
    if list(steps) != sorted(set(steps)) or steps[0] < 1 or steps[-1] != 100:
        raise ValueError("not growing from 1 or more and ending at 100")
    return steps


def plain(value: float) -> str:
    """Write a number without an exponent or a trailing `.0`, so that it parses again."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_words(seconds: float) -> str:
    """Write seconds in the unit that leaves a whole number, at most minutes: `500ms`, `10s`, `2m`, `60m`."""
    if 0 < seconds < 1:
        return f"{plain(round(seconds * 1000, 3))}ms"
    if seconds >= 120 and seconds % 60 == 0:
        return f"{plain(seconds / 60)}m"
    return f"{plain(round(seconds, 3))}s"
