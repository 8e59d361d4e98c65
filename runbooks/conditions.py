"""Read and judge conditions of the form `metric op number[unit]`, the only ones a runbook may hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from runbooks import quantity
from runbooks.comparison import OPERATORS
from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.templates import render
from runbooks.values import refused_on_trial, sample
from runbooks.verdict import CheckResult, Verdict, compared, passed
from runbooks.where import Where, shown
from sluicegate import telemetry as names
from sluicegate.damage import AGES, DEADLINES, known, was_measured
from sluicegate.errors import SettingsError
from sluicegate.policy import Thresholds, rate_is_sampled
from sluicegate.telemetry import Part, Telemetry


class Unit(StrEnum):
    """Name what a figure counts in, and so which unit its bound must carry."""

    SECONDS = "seconds"  # a duration: 20s, 500ms, 2m
    RATIO = "ratio"  # a share: 5% or 0.05
    COUNT = "count"  # a whole number


@dataclass(frozen=True, slots=True)
class Figure:
    """Pair a figure's unit with where it is read and what it is read from; None is a figure without a sample."""

    unit: Unit
    value: Callable[[Telemetry], float | None]
    parts: tuple[Part, ...] = ()
    is_provider_rate: bool = False

    def read(self, telemetry: Telemetry) -> float | None:
        """Give the figure of this instant, None without a sample or where somebody wrote over what it is read from."""
        return known(telemetry, self.value(telemetry), *self.parts)


# What a condition may ask of beside the exported figures.
UNKNOWN_JOBS = "unknown_jobs"
OLDEST_UNKNOWN_SECONDS = "oldest_unknown_seconds"
CANARIES_GREEN = "canaries_green"
CANARY_FAILURES = "canary_failures"
UNFINISHED_JOBS = "unfinished_jobs"


def _oldest_unknown_s(seen: Telemetry) -> float:
    return 0.0 if seen.oldest_unknown_at_ms is None else max(0, seen.at_ms - seen.oldest_unknown_at_ms) / 1000


FIGURES: dict[str, Figure] = {
    names.QUEUE_AGE_P95_SECONDS: Figure(Unit.SECONDS, lambda seen: seen.queue_age_p95_seconds, AGES),
    names.OLDEST_JOB_AGE_SECONDS: Figure(Unit.SECONDS, lambda seen: seen.oldest_job_age_seconds, AGES),
    names.DEADLINE_SLACK_P10_SECONDS: Figure(Unit.SECONDS, lambda seen: seen.deadline_slack_p10_seconds, DEADLINES),
    names.PROVIDER_5XX_RATE: Figure(
        Unit.RATIO, lambda seen: seen.provider.rate_5xx, (Part.PROVIDER,), is_provider_rate=True
    ),
    names.PROVIDER_TIMEOUT_RATE: Figure(
        Unit.RATIO, lambda seen: seen.provider.rate_timeout, (Part.PROVIDER,), is_provider_rate=True
    ),
    names.WORKER_INFLIGHT: Figure(Unit.COUNT, lambda seen: seen.worker_inflight, (Part.RUNNING,)),
    names.CANARY_OK_COUNT: Figure(Unit.COUNT, lambda seen: seen.gate.canary_ok_count if seen.gate.readable else None),
    names.PREDICTED_WAIT_SECONDS: Figure(
        Unit.SECONDS, lambda seen: seen.predicted_wait_seconds, (Part.READY, Part.COMPLETIONS)
    ),
    names.DOOMED_JOBS: Figure(Unit.COUNT, lambda seen: seen.doomed, DEADLINES),
    UNKNOWN_JOBS: Figure(Unit.COUNT, lambda seen: seen.unknown, (Part.UNKNOWN,)),
    OLDEST_UNKNOWN_SECONDS: Figure(Unit.SECONDS, _oldest_unknown_s, (Part.UNKNOWN,)),
    CANARIES_GREEN: Figure(Unit.COUNT, lambda seen: float(seen.gate.green) if seen.gate.readable else None),
    CANARY_FAILURES: Figure(Unit.COUNT, lambda seen: seen.gate.canary_failures if seen.gate.readable else None),
    UNFINISHED_JOBS: Figure(
        Unit.COUNT, lambda seen: seen.unfinished, (Part.READY, Part.DELAYED, Part.RUNNING, Part.DEADLINES)
    ),
    names.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED: Figure(
        Unit.COUNT, lambda seen: seen.gate.duplicates_unacknowledged if seen.gate.readable else None
    ),
}

_PARSERS: dict[Unit, Callable[[str], float]] = {
    Unit.SECONDS: quantity.duration_s,
    Unit.RATIO: quantity.ratio,
    Unit.COUNT: quantity.count,
}
_FORM = re.compile(r"(?P<metric>[a-z][a-z0-9_]*) *(?P<op>>=|<=|==|>|<) *(?P<bound>\S.*)", re.ASCII)
_HINT = "A condition reads like `queue_age_p95_seconds >= 25s`."


@dataclass(frozen=True, slots=True)
class Condition:
    """Hold one comparison of a figure with a bound; the bound may name a setting."""

    text: str
    metric: str
    op: str
    bound: str

    @classmethod
    def read(cls, text: str, where: Where) -> Condition:
        """Take a condition from a file; raises SettingsError with file, field, value and bound."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise where.refuse(text, "not a condition `metric op number[unit]`", _HINT)
        metric = match["metric"]
        if metric not in FIGURES:
            near = get_close_matches(metric, FIGURES, n=1)
            hint = f"Did you mean `{near[0]}`?" if near else f"The figures are {', '.join(FIGURES)}."
            raise where.refuse(text, f"and {shown(metric)} is not a figure a condition may use", hint)
        condition = cls(text, metric, match["op"], match["bound"])
        refused_on_trial(lambda: condition._limit(sample()), text, where)
        return condition

    def limit(self, context: Context) -> float:
        """Give the bound as a number: seconds, share or count; raises SettingsError where the settings spoil it."""
        try:
            return self._limit(context)
        except ValueError as error:
            raise SettingsError(
                f"The runbook's condition {shown(self.text)} cannot be used with these settings: {error}."
            ) from error

    def check(self, telemetry: Telemetry, context: Context, evidence: Evidence = NO_EVIDENCE) -> CheckResult:
        """Compare the figure of this instant with the bound."""
        figure, limit = FIGURES[self.metric], self.limit(context)
        value = figure.read(telemetry)
        bound = f"{self.op} {_worded(limit, figure.unit)}"
        none_at_risk = telemetry.unfinished == 0 and was_measured(telemetry, Part.READY, *DEADLINES)
        if self.metric == names.DEADLINE_SLACK_P10_SECONDS and value is None and none_at_risk:
            at_risk = self.op in ("<", "<=", "==")
            return CheckResult(self.metric, None, bound, passed(not at_risk), "no unfinished job, none at risk")
        if figure.is_provider_rate and value is not None:
            return _provider_rate(self, value, limit, bound, telemetry, context.contract.thresholds)
        return compared(self.metric, value, bound, lambda measured: OPERATORS[self.op](measured, limit))

    def worded(self, context: Context) -> str:
        """Write the condition with its bound filled in."""
        return f"{self.metric} {self.op} {_worded(self.limit(context), FIGURES[self.metric].unit)}"

    def queries(self, context: Context) -> tuple[str, ...]:
        """Ask no query: the figure is the queue's own."""
        return ()

    def _limit(self, context: Context) -> float:
        return _PARSERS[FIGURES[self.metric].unit](render(self.bound, context))


def _worded(limit: float, unit: Unit) -> str:
    if unit is Unit.SECONDS:
        return quantity.in_words(limit)
    return f"{quantity.plain(round(limit * 100, 6))}%" if unit is Unit.RATIO else quantity.plain(limit)


def _provider_rate(
    condition: Condition, rate: float, limit: float, bound: str, telemetry: Telemetry, thresholds: Thresholds
) -> CheckResult:
    """Judge a rate by the rules of `decide()`: no sample under 20 calls or 5 failed, no drain on one failed call."""
    window = telemetry.provider
    if not rate_is_sampled(window, thresholds):
        why = f"{window.calls} calls with {window.failed} failed are too few for a sample"
        return CheckResult(condition.metric, rate, bound, Verdict.INCONCLUSIVE, why)
    if condition.op in (">=", ">") and window.failed < thresholds.drain_min_failed:
        why = f"{window.failed} failed of {window.calls} calls, under the {thresholds.drain_min_failed} that count"
        return CheckResult(condition.metric, rate, bound, Verdict.FAIL, why)
    return compared(condition.metric, rate, bound, lambda measured: OPERATORS[condition.op](measured, limit))
