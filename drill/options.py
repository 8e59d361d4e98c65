"""Read what a person asks of a drill; whatever can't be used gets one sentence and a hint."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from drill import defaults
from drill.profile import ProfileName
from drill.server import ServerKind
from runbooks import quantity
from sluicegate.errors import UsageError

MAX_RATE_PER_S = 200.0
_RATE = re.compile(r"(?P<count>[0-9]{1,6}(?:\.[0-9]{1,6})?)/(?P<per>s|m|h)")
_PER_S = {"s": 1.0, "m": 60.0, "h": 3600.0}

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True)
class DrillOptions:
    """Hold one drill's options, parsed. Without a duration the load lasts as long as the scenario."""

    scenario: str
    profile: ProfileName
    server: ServerKind
    rate_per_s: float
    duration_s: float
    mix: Mapping[str, float]
    seed: int
    keep: bool
    report_dir: Path


def parse_rate(text: str) -> float:
    """Give jobs a second from `12/s`, `720/m` or `43200/h`; raises UsageError with the bound."""
    match = _RATE.fullmatch(text.strip())
    per_s = float(match["count"]) / _PER_S[match["per"]] if match else 0.0
    if not 0 < per_s <= MAX_RATE_PER_S:
        raise UsageError(
            f"--rate {text!r} is not a rate above 0 and at most {MAX_RATE_PER_S:g}/s.",
            f"Write a count and a unit, for example --rate {defaults.RATE} or --rate 720/m.",
        )
    return per_s


def parse_duration(text: str) -> float:
    """Give seconds from `180s` or `3m`; raises UsageError with the bound."""
    try:
        return quantity.duration_s(text)
    except ValueError as error:
        raise UsageError(
            f"--duration {text!r} can't be used: it is {error}.", "Write for example --duration 180s or --duration 3m."
        ) from error


def parse_mix(text: str, classes: Collection[str]) -> dict[str, float]:
    """Give class → share (they add up to 1) from `lint-fix:70,test-patch:30`; raises UsageError naming the part."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = part.strip().partition(":")
        if name not in classes:
            raise _bad_mix(text, f"{name!r} is not a declared class")
        if name in weights:
            raise _bad_mix(text, f"{name!r} stands in it twice")
        weights[name] = _weight(text, name, weight)
    total = sum(weights.values())
    if total <= 0:
        raise _bad_mix(text, "the weights add up to 0")
    return {name: weight / total for name, weight in weights.items()}


def _weight(text: str, name: str, weight: str) -> float:
    try:
        return float(quantity.count(weight))
    except ValueError as error:
        raise _bad_mix(text, f"the weight of {name!r} is {weight!r}, {error}") from error


def _bad_mix(text: str, reason: str) -> UsageError:
    return UsageError(f"--mix {text!r} can't be used: {reason}.", f"Write for example --mix {defaults.MIX}")


def parse_choice(flag: str, text: str, choices: type[Choice]) -> Choice:
    """Give the member of a closed set; raises UsageError that lists them."""
    try:
        return choices(text)
    except ValueError as error:
        listed = ", ".join(member.value for member in choices)
        raise UsageError(f"{flag} {text!r} is not known.", f"Choose one of {listed}.") from error


def check_writable(report_dir: Path) -> Path:
    """Return the folder that reports go to, absolute; raises UsageError where none can be made.

    Nothing is made here: a drill that is killed before its report leaves no empty folder.
    """
    wanted = report_dir.absolute()
    there = next(place for place in (wanted, *wanted.parents) if place.exists())
    try:
        if not there.is_dir():
            raise NotADirectoryError("a file, no folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError("not allowed for this user")
        with tempfile.TemporaryFile(dir=there):
            return wanted
    except OSError as error:
        raise UsageError(
            f"The report can't be written to {report_dir}: {there}: {error.strerror or error}.",
            "Name a folder that this user can write to with --report-dir.",
        ) from error
