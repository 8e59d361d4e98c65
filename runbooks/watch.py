"""Watch figures: what must hold, what must not, and whether it has held for long enough. Pure.

No data is neither: it breaks the time for which something has held, and counts for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runbooks.conditions import Condition
from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.promql import Query
from runbooks.verbs.step import NoData
from runbooks.verdict import CheckResult, Verdict
from runbooks.where import Where
from sluicegate.telemetry import Telemetry


class Standing(StrEnum):
    """Name what one look at the figures says."""

    HOLDS = "holds"  # all that must hold does, and nothing that must not
    NOT_YET = "not_yet"  # measured, and something that must hold does not
    BREACHED = "breached"  # something that must not hold does
    NO_DATA = "no_data"  # a figure has no sample


@dataclass(frozen=True, slots=True)
class Judgement:
    """Hold what one look came to, with every check."""

    standing: Standing
    checks: tuple[CheckResult, ...]

    @property
    def why(self) -> str:
        """Name the checks that keep it from holding."""
        missed = [check for check in self.checks if check.verdict is not Verdict.PASS]
        return "; ".join(
            f"{check.name} is {'no sample' if check.value is None else check.value}, bound {check.bound}"
            + (f" ({check.why})" if check.why else "")
            for check in missed
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """Hold the conditions: all of `pass_if`, none of `fail_if`."""

    pass_if: tuple[Condition | Query, ...]
    fail_if: tuple[Condition | Query, ...]
    no_data: NoData | None

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Watch:
        no_data = fields.get("no_data")
        return cls(
            pass_if=_conditions(fields.get("pass_if", []), where.at("pass_if")),
            fail_if=_conditions(fields.get("fail_if", []), where.at("fail_if")),
            no_data=None if no_data is None else NoData(no_data),
        )

    def judge(self, telemetry: Telemetry, context: Context, evidence: Evidence = NO_EVIDENCE) -> Judgement:
        """Look once."""
        wanted = tuple(one.check(telemetry, context, evidence) for one in self.pass_if)
        feared = tuple(_turned(one.check(telemetry, context, evidence)) for one in self.fail_if)
        checks = (*wanted, *feared)
        if _any(feared, Verdict.FAIL):
            return Judgement(Standing.BREACHED, checks)
        if _any(checks, Verdict.INCONCLUSIVE):
            return Judgement(Standing.NO_DATA, checks)
        return Judgement(Standing.NOT_YET if _any(wanted, Verdict.FAIL) else Standing.HOLDS, checks)

    def queries(self, context: Context) -> tuple[str, ...]:
        """Give the PromQL that a look needs answers to."""
        return tuple(dict.fromkeys(text for one in (*self.pass_if, *self.fail_if) for text in one.queries(context)))

    def worded(self, context: Context) -> str:
        """Write what must hold and what must not."""
        wanted = " and ".join(one.worded(context) for one in self.pass_if)
        feared = " or ".join(one.worded(context) for one in self.fail_if)
        return " and ".join(part for part in (wanted, f"not {feared}" if feared else "") if part)


@dataclass(frozen=True, slots=True)
class Look:
    """Hold one look that was written down: ms of Redis TIME, and what it said."""

    at_ms: int
    standing: Standing


def held_ms(looks: Sequence[Look], longest_gap_ms: float) -> int:
    """Give for how long it has held without a break up to the last look; a gap in the looks is one."""
    if not looks or looks[-1].standing is not Standing.HOLDS:
        return 0
    since = later = looks[-1].at_ms
    for look in reversed(looks[:-1]):
        if look.standing is not Standing.HOLDS or later - look.at_ms > longest_gap_ms:
            break
        since = later = look.at_ms
    return looks[-1].at_ms - since


def _conditions(written: Iterable[str | Mapping[str, str]], where: Where) -> tuple[Condition | Query, ...]:
    return tuple(
        Condition.read(one, where.at(index)) if isinstance(one, str) else Query.read(one, where.at(index))
        for index, one in enumerate(written)
    )


def _any(checks: Iterable[CheckResult], verdict: Verdict) -> bool:
    return any(check.verdict is verdict for check in checks)


def _turned(check: CheckResult) -> CheckResult:
    """Turn the check of what must not hold: it passes where the condition does not hold."""
    turned = {Verdict.PASS: Verdict.FAIL, Verdict.FAIL: Verdict.PASS}.get(check.verdict, check.verdict)
    return CheckResult(check.name, check.value, f"not {check.bound}", turned, check.why)
