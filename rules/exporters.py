"""Spell what exporters on one queue show: one alone, its twin, and one that shows the lesser of every figure.

A record takes the worse of what several exporters show, so beside the first neither of the others may change anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rules.cases import Phase, Signal, Situation, spell
from rules.promql import matchers
from rules.scope import Scope
from sluicegate.records import RECORDS, Operation, Source
from sluicegate.telemetry import QUEUE_LABEL

FIRST, TWIN, LESSER = "exporter-1:9108", "exporter-2:9108", "exporter-3:9108"
# No figure of a test comes near it: a day, where thresholds are seconds and minutes.
_FAR = 86_400.0
_RECORD_OF = {record.metric: record for record in RECORDS}


class Exporters:
    """Spell the series of one queue's exporters over some phases."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def alone(self, phases: tuple[Phase, ...], instance: str = FIRST, job: str = "") -> dict[str, str]:
        """Spell the series of one exporter, under another job's name if one is given."""
        keys = dict.fromkeys(key for phase in phases for key in phase.situation)
        interval_s = self._scope.timing.scrape_s
        return {
            self._full(key, instance, job): spell(key, phases, interval_s)
            for key in keys
            if any(phase.situation.get(key) is not None for phase in phases)
        }

    def together(self, phases: tuple[Phase, ...]) -> dict[str, str]:
        """Spell the series of the first, its twin and the lesser one."""
        lesser = tuple(replace(phase, situation=_lesser(phase.situation)) for phase in phases)
        return {**self.alone(phases), **self.alone(phases, TWIN), **self.alone(lesser, LESSER)}

    def _full(self, key: str, instance: str, job: str) -> str:
        metric, _, labels = key.removesuffix("}").partition("{")
        monitoring = self._scope.settings.monitoring
        record = _RECORD_OF.get(metric)
        own = record is not None and record.source is Source.AUTOMATION
        job = job or (monitoring.automation_job if own else monitoring.exporter_job)
        common = matchers({"job": job, "instance": instance, QUEUE_LABEL: self._scope.queue})
        return f"{metric}{{{','.join(filter(None, (common, labels)))}}}"


def _lesser(situation: Situation) -> Mapping[str, Signal | None]:
    return {
        key: signal if signal is None or math.isnan(signal.value) else _least(key) for key, signal in situation.items()
    }


def _least(key: str) -> Signal:
    """Give what every other value of a figure outweighs: a time of yesterday, none at all, or a great deal of slack."""
    metric, _, _ = key.partition("{")
    record = _RECORD_OF.get(metric)
    if record is not None and record.operation is Operation.MIN:
        return Signal(_FAR)
    return Signal(-_FAR if metric.endswith("_timestamp_seconds") else 0)
