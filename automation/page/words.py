"""Put times, durations and figures into words for the page. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]*)`")


def clock(ms: int) -> str:
    """Give an instant's time of day in UTC."""
    return _utc(ms).strftime("%H:%M:%S UTC")


def day_and_clock(ms: int) -> str:
    """Give an instant's day and time in UTC."""
    return _utc(ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def machine(ms: int) -> str:
    """Give an instant as a program reads it."""
    return _utc(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(value: float) -> str:
    """Give a duration, minutes from two of them on."""
    whole = abs(value)
    if whole < 120:
        return f"{value:.1f} s" if whole < 10 else f"{value:.0f} s"
    sign = "-" if value < 0 else ""
    minutes, rest = divmod(round(whole), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours} h {minutes} min" if hours else f"{sign}{minutes} min {rest} s"


def percent(value: float) -> str:
    """Give a ratio 0..1."""
    return f"{100 * value:.1f} %"


def count(value: float) -> str:
    return f"{value:g}"


def with_code(text: str) -> Markup:
    """Mark the commands in a sentence, which stand in backticks; everything in it stays text."""
    parts = _CODE.split(text)
    marked = [
        escape(part) if place % 2 == 0 else Markup("<code>{}</code>").format(part) for place, part in enumerate(parts)
    ]
    return Markup("").join(marked)


def _utc(ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
