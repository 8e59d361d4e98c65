"""Say what a check came to: pass, fail or inconclusive. No data is neither a pass nor a fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Name what a gate says; the comment says what the run does next."""

    PASS = "pass"  # noqa: S105 (a verdict): go on
    FAIL = "fail"  # measure again, or roll back where the gate says so
    INCONCLUSIVE = "inconclusive"  # measure again, and never count it as either


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Hold one check: what was measured (None without a sample), against what, and the verdict."""

    name: str
    value: float | None
    bound: str
    verdict: Verdict
    why: str = ""


def overall(checks: Iterable[CheckResult]) -> Verdict:
    """Give the verdict of all checks together: one that failed fails it, else one without data leaves it open."""
    verdicts = {check.verdict for check in checks}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.INCONCLUSIVE


def any_of(checks: Iterable[CheckResult]) -> Verdict:
    """Give the verdict where one check is enough: one that passed passes it, else one without data leaves it open."""
    verdicts = {check.verdict for check in checks}
    if Verdict.PASS in verdicts:
        return Verdict.PASS
    return Verdict.FAIL if verdicts == {Verdict.FAIL} else Verdict.INCONCLUSIVE


def passed(holds: bool) -> Verdict:
    """Turn a measured condition into a verdict."""
    return Verdict.PASS if holds else Verdict.FAIL


def compared(
    name: str, value: float | None, bound: str, holds: Callable[[float], bool], absent: str = "no sample"
) -> CheckResult:
    """Compare one figure; without a sample, or with NaN, the verdict is inconclusive and `absent` says why."""
    if value is None or math.isnan(value):
        return CheckResult(name, None, bound, Verdict.INCONCLUSIVE, absent)
    return CheckResult(name, value, bound, passed(holds(value)))
