"""Ask Prometheus for what a replay needs: when rules were evaluated, what an expression gave, which harm there was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from rules.backtest.evaluations import Evaluations
from rules.backtest.expansion import expand
from rules.backtest.harm import Closing, Miss
from rules.backtest.replay import stretches_of
from rules.burn import MISSES
from rules.promql import duration, matchers
from rules.scope import Scope
from sluicegate import records
from sluicegate.errors import PrometheusFailed
from sluicegate.gate import DrainState
from sluicegate.prometheus import Prometheus
from sluicegate.records import AlertName, Record
from sluicegate.telemetry import CLASS_LABEL, DRAIN_STATE, OUTCOME_LABEL, QUEUE_LABEL

# Labels of a series, in a form that can be a key.
Labels = tuple[tuple[str, str], ...]

_HOURS_AT_ONCE_MS = 3 * 3_600_000
# A counter is compared with its last value, however long ago, up to what Prometheus itself looks back.
_LOOKBACK_S = 300
_CURVE_STEPS = 600
# Evaluations that may be missing before it is a stretch in which nothing was counted.
_PAUSE_INTERVALS = 3


class Inputs(StrEnum):
    """Name what the history is read from."""

    RECORDS = "records"  # what the rules wrote, at the very instants of their evaluations: the replay is exact
    METRICS = "metrics"  # what the exporter showed, at whole intervals: for times before the rules were loaded


@dataclass(frozen=True)
class History:
    """Read one queue's history from one Prometheus between two instants (Unix ms)."""

    prometheus: Prometheus
    scope: Scope
    inputs: Inputs
    evaluations: Evaluations

    @classmethod
    def find(
        cls, prometheus: Prometheus, scope: Scope, from_ms: int, to_ms: int, inputs: Inputs | None = None
    ) -> History:
        """Find what there is; without `inputs` the records, unless the exporter's metrics go further back.

        Raises PrometheusFailed where there is nothing.
        """
        told = AlertName.WATCHDOG
        watchdog = f"ALERTS{{{matchers({'alertname': told.value, QUEUE_LABEL: scope.queue, 'alertstate': 'firing'})}}}"
        recorded = cls._instants(prometheus, scope.series(records.SNAPSHOT), from_ms, to_ms)
        found = Evaluations.found(cls._instants(prometheus, watchdog, from_ms, to_ms), recorded)
        if inputs is Inputs.RECORDS or (
            inputs is None and not cls._metrics_are_older(prometheus, scope, found, from_ms)
        ):
            history = cls(prometheus, scope, Inputs.RECORDS, found)
        else:
            interval_ms = round(scope.timing.evaluation_s * 1000)
            regular = Evaluations.regular(from_ms, to_ms, interval_ms)
            history = cls(prometheus, scope, Inputs.METRICS, regular)._from_its_first_sample()
        if not history.evaluations.since(from_ms):
            raise PrometheusFailed(
                f"The history holds nothing of queue {scope.queue}: no"
                f" {'record' if history.inputs is Inputs.RECORDS else 'figure of the exporter'} in that time.\n"
                "Check --since, the queue's name, and monitoring.exporter_job in the settings."
            )
        return history

    @staticmethod
    def _instants(prometheus: Prometheus, selector: str, from_ms: int, to_ms: int) -> list[int]:
        return sorted(
            {
                at
                for begins in range(from_ms, to_ms, _HOURS_AT_ONCE_MS)
                for one in prometheus.samples(selector, begins, min(to_ms, begins + _HOURS_AT_ONCE_MS))
                for at, _ in one.samples
            }
        )

    @staticmethod
    def _metrics_are_older(prometheus: Prometheus, scope: Scope, found: Evaluations, from_ms: int) -> bool:
        """Tell whether the exporter was scraped before the first evaluation, by more than a scrape takes to be seen."""
        if not found.instants:
            return True
        before = found.instants[0] - round(1000 * (2 * scope.timing.scrape_s + scope.timing.evaluation_s))
        metric = f"{records.SNAPSHOT.metric}{{{scope.selector(records.SNAPSHOT)}}}"
        return before > from_ms and bool(
            prometheus.at(f"count(last_over_time({metric}[{before - from_ms}ms]))", before)
        )

    def _from_its_first_sample(self) -> History:
        """Begin where the exporter was first scraped: before it there was nothing that an alert could miss."""
        at = {at for instants in self.present(self.scope.series(records.SNAPSHOT)).values() for at in instants}
        kept = tuple(one for one in self.evaluations.all if at and one.at_ms >= min(at))
        return replace(self, evaluations=Evaluations(kept, self.evaluations.interval_ms))

    def thinned(self, step_ms: int) -> History:
        """Look only once in a step."""
        return replace(self, evaluations=self.evaluations.thinned(step_ms))

    def present(self, expression: str) -> dict[Labels, set[int]]:
        """Tell at which evaluations an expression gave a sample, by the labels of its series without their name."""
        wanted = set(self.evaluations.instants)
        found: dict[Labels, set[int]] = {}
        for labels, at, _ in self._values(expression):
            if at in wanted:
                found.setdefault(labels, set()).add(at)
        return found

    def _values(self, expression: str) -> Iterable[tuple[Labels, int, float]]:
        asked = self._asked(expression)
        step_ms = self.evaluations.interval_ms
        for first, last in self.evaluations.grids():
            for one in self.prometheus.over(asked, first, last, step_ms):
                labels = tuple(sorted((name, value) for name, value in one.labels.items() if name != "__name__"))
                yield from ((labels, at, value) for at, value in one.samples)

    def _asked(self, expression: str) -> str:
        return expression if self.inputs is Inputs.RECORDS else expand(expression, self.scope)

    def misses(self) -> tuple[Miss, ...]:
        """Give the deadlines that were missed or expired, when Prometheus saw it, by class."""
        counted = self.scope.one_of(records.CLASS_OUTCOMES, OUTCOME_LABEL, MISSES)
        step = duration(self.evaluations.interval_ms / 1000)
        by = f"sum by ({QUEUE_LABEL}, {CLASS_LABEL})"
        before = f"last_over_time({counted}[{_LOOKBACK_S}s] offset {step})"
        if self.inputs is Inputs.METRICS:
            # A subquery of whole intervals might leave the last value out, so the metric itself is looked back on.
            selector = counted.partition("{")[2].rstrip("}")
            metric = f"{records.CLASS_OUTCOMES.metric}{{{self.scope.selector(records.CLASS_OUTCOMES)},{selector}}}"
            kept = ", ".join(records.CLASS_OUTCOMES.labels)
            before = f"max by ({kept}) (last_over_time({metric}[{_LOOKBACK_S}s] offset {step}))"
        risen = f"({by} ({counted}) - {by} ({before})) > 0"
        wanted = set(self.evaluations.instants)
        seen = (
            Miss(at, dict(labels).get(CLASS_LABEL, ""), round(value))
            for labels, at, value in self._values(risen)
            if at in wanted and math.isfinite(value)
        )
        return tuple(sorted([*seen, *self._found_afterwards(f"{by} ({counted})")]))

    @cached_property
    def unseen(self) -> tuple[tuple[int, int], ...]:
        """Give the stretches in which no deadline was counted: Prometheus was down, or the figure was not there."""
        counted = self.scope.one_of(records.CLASS_OUTCOMES, OUTCOME_LABEL, MISSES)
        gone = {at for instants in self.present(f"absent({counted})").values() for at in instants}
        first, *_, last = (*self.evaluations.instants, self.evaluations.instants[-1])
        counts = [at for at in self.evaluations.instants if at not in gone]
        pause_ms = _PAUSE_INTERVALS * self.evaluations.interval_ms
        return tuple((before, after) for before, after in pairwise((first, *counts, last)) if after - before > pause_ms)

    def _found_afterwards(self, counted: str) -> Iterator[Miss]:
        """Compare the totals on both sides of a stretch that is longer than what `misses` looks back on."""
        for before, after in self.unseen:
            if after - before > _LOOKBACK_S * 1000 + self.evaluations.interval_ms:
                earlier, later = self._totals(counted, before), self._totals(counted, after)
                for name, value in later.items():
                    risen = value - earlier.get(name, value)
                    if math.isfinite(risen) and risen > 0:
                        yield Miss(after, name, round(risen))

    def _totals(self, counted: str, at_ms: int) -> dict[str, float]:
        found = self.prometheus.at(self._asked(counted), at_ms)
        return {one.labels.get(CLASS_LABEL, ""): one.samples[0][1] for one in found}

    def closings(self) -> tuple[Closing, ...]:
        """Give the stretches in which the gate was not in `admit`, each with its state."""
        closed = [state.value for state in DrainState if state is not DrainState.ADMIT]
        found = self.present(f"{self.scope.one_of(records.DRAIN_STATE, DRAIN_STATE, closed)} == 1")
        spans = [
            Closing(dict(labels).get(DRAIN_STATE, ""), begun, ended)
            for labels, instants in found.items()
            for begun, ended in stretches_of(instants, self.evaluations.instants)
        ]
        return tuple(sorted(spans, key=lambda one: one.from_ms))

    def curve(self, record: Record) -> tuple[tuple[int, float | None], ...]:
        """Give a record's course in a few hundred steps, the worst value of each; None where it has none."""
        instants = self.evaluations.instants
        first, last = instants[0], instants[-1]
        step_ms = max(self.evaluations.interval_ms, -(-(last - first) // _CURVE_STEPS))
        worst = f"{record.operation}_over_time"
        if self.inputs is Inputs.RECORDS:
            asked = f"{worst}({self.scope.series(record)}[{step_ms}ms])"
        else:
            metric = f"{record.metric}{{{self.scope.selector(record)}}}"
            asked = f"{record.operation} by ({', '.join(record.labels)}) ({worst}({metric}[{step_ms}ms]))"
        values: Mapping[int, float] = {
            at: value for one in self.prometheus.over(asked, first, last, step_ms) for at, value in one.samples
        }
        return tuple((at, values.get(at)) for at in range(first, last + 1, step_ms))
