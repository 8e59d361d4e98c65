"""Read from when to when a person means: `7d` ago, or `2026-03-01T09:00Z`. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from sluicegate.errors import UsageError

NOW = "now"
_LASTING = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d|w)", re.ASCII)
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_S = 3660 * 86_400


def period_ms(since: str, until: str, now: datetime) -> tuple[int, int]:
    """Give two times as Unix ms; raises UsageError where one is none, or they are in the wrong order."""
    begins, ends = _moment("--since", since, now), _moment("--until", until, now)
    if begins >= ends:
        raise UsageError(
            f"--since {since} is not before --until {until}.", "Each is a duration ago (7d) or a time in UTC."
        )
    return round(begins.timestamp() * 1000), round(ends.timestamp() * 1000)


def lasting_s(option: str, text: str) -> float:
    """Give a duration in seconds; raises UsageError, naming the option, where it is none or longer than ten years."""
    match = _LASTING.fullmatch(text.strip())
    seconds = float(match[1]) * _UNIT_S[match[2]] if match else 0
    if match is None or seconds > _LONGEST_S:
        raise UsageError(f"{option} {text!r} is no duration.", "Write for example 500ms, 90s, 15m, 6h, 7d or 2w.")
    return seconds


def _moment(option: str, text: str, now: datetime) -> datetime:
    if text == NOW:
        return now
    if _LASTING.fullmatch(text.strip()):
        return now - timedelta(seconds=lasting_s(option, text))
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(
            f"{option} {text!r} is no time.", "Write a duration ago (7d) or a time in UTC (2026-03-01T09:00Z)."
        ) from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
