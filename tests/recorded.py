"""A Prometheus with a history of days: figures over time, made blocks by promtool, and served by the real program.

A history is a healthy queue with episodes in it, in which some of its figures are others.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drill.children import Children
from drill.monitoring import Prometheus, PrometheusOptions
from rules.cases import Signal, Situation
from rules.promtool import find_promtool
from rules.scope import Scope
from rules.situations import healthy
from sluicegate.records import RECORDS, AlertName, Source
from sluicegate.settings import Settings, parse
from sluicegate.telemetry import QUEUE_LABEL

DAY_S = 86_400
# When each evaluation of a history is after its scrape.
EVALUATED_AFTER_S = 0.3
# The value of a figure at so many seconds from the history's start.
Course = Callable[[float], float]
_RECORD_OF = {record.metric: record for record in RECORDS}


@dataclass(frozen=True)
class Episode:
    """Hold figures that differ for a while, in seconds from the history's start; a slope counts from there too."""

    from_s: float
    to_s: float
    situation: Situation


@dataclass(frozen=True)
class Recording:
    """Hold a history: how long, of whose settings, what happened, and what else it is `before` anything happens.

    `drawn` figures have a course of their own; `gaps` are times in which nothing was scraped or evaluated.
    """

    settings: Settings
    lasts_s: float
    episodes: tuple[Episode, ...] = ()
    before: Mapping[str, Signal | None] = field(default_factory=dict)
    drawn: Mapping[str, Course] = field(default_factory=dict)
    gaps: tuple[tuple[float, float], ...] = ()
    with_records: bool = True
    with_metrics: bool = False

    def write(self, path: Path, from_s: float) -> None:
        """Write it in the OpenMetrics format, from a Unix time on."""
        scope = Scope(self.settings)
        # Timestamps grow by a second a second from the same zero as those of the samples.
        usual = {**healthy(scope), **self.before, **dict.fromkeys(self.drawn, Signal(0))}
        changed = {key for episode in self.episodes for key in episode.situation}
        with path.open("w", encoding="utf-8") as file:
            for name, keys in _by_metric([*usual, *(changed - usual.keys())]).items():
                for lines in self._family(scope, name, keys, usual, from_s):
                    file.writelines(lines)
            if self.with_records:
                watchdog = {"alertname": AlertName.WATCHDOG.value, "alertstate": "firing", QUEUE_LABEL: scope.queue}
                file.write("# TYPE ALERTS gauge\n")
                for at_s in self._instants():
                    file.write(f"ALERTS{_labels(watchdog)} 1 {from_s + at_s + EVALUATED_AFTER_S:.3f}\n")
            file.write("# EOF\n")

    def _instants(self) -> Iterator[float]:
        step_s = self.settings.monitoring.scrape_interval_s
        for number in range(round(self.lasts_s / step_s)):
            at_s = number * step_s
            if not any(begins <= at_s < ends for begins, ends in self.gaps):
                yield at_s

    def _family(
        self, scope: Scope, name: str, keys: list[str], usual: Situation, from_s: float
    ) -> Iterator[Iterable[str]]:
        record = _RECORD_OF.get(name)
        if self.with_metrics:
            job = scope.settings.monitoring
            page = job.automation_job if record and record.source is Source.AUTOMATION else job.exporter_job
            yield [f"# TYPE {name} unknown\n"]
            for key in keys:
                labels = _labels({"job": page, "instance": "exporter:9108", QUEUE_LABEL: scope.queue, **_of(key)})
                yield self._samples(f"{name}{labels}", key, usual, from_s, 0.0)
        if self.with_records and record is not None:
            yield [f"# TYPE {record.name} unknown\n"]
            for key in keys:
                labels = _labels({QUEUE_LABEL: scope.queue, **_of(key)})
                yield self._samples(f"{record.name}{labels}", key, usual, from_s, EVALUATED_AFTER_S)

    def _samples(self, series: str, key: str, usual: Situation, from_s: float, after_s: float) -> Iterator[str]:
        course = self.drawn.get(key)
        for at_s in self._instants():
            if course is not None:
                yield f"{series} {course(at_s):.12g} {from_s + at_s + after_s:.3f}\n"
                continue
            signal = usual.get(key)
            for episode in self.episodes:
                if episode.from_s <= at_s < episode.to_s and key in episode.situation:
                    signal = episode.situation[key]
            if signal is not None:
                # A slope of one is a clock's.
                zero_s = from_s if signal.slope_per_s == 1 else 0.0
                value = signal.value + signal.slope_per_s * (zero_s + at_s)
                yield f"{series} {value:.12g} {from_s + at_s + after_s:.3f}\n"


def _by_metric(keys: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(key.partition("{")[0], []).append(key)
    return found


def _of(key: str) -> dict[str, str]:
    """Give the labels of a key such as `jobs{state="pending"}`."""
    inner = key.partition("{")[2].removesuffix("}")
    pairs = (pair.partition("=") for pair in inner.split(",") if pair)
    return {name: value.strip('"') for name, _, value in pairs}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def by_the_minute(queue: str = "default", **thresholds: float) -> Settings:
    """Give settings whose Prometheus looks once a minute: a week of it is made in a moment."""
    body = {
        "queue": queue,
        "contract": {
            "classes": {"lint": {"deadline_s": 600}, "plan": {"deadline_s": 1800}},
            "thresholds": {
                "reject_age_p95_seconds": 120,
                "drain_age_p95_seconds": 180,
                "recovered_age_p95_seconds": 90,
                **thresholds,
            },
        },
        "monitoring": {
            "scrape_interval_s": 60,
            "evaluation_interval_s": 60,
            "alert_for_s": 60,
            "keep_firing_for_s": 120,
        },
    }
    return parse(body, "a test")


def serve(children: Children, recording: Recording, from_s: float, name: str = "prometheus") -> Prometheus:
    """Make the blocks and start a Prometheus on them, which scrapes nothing."""
    folder = children.folder / name / "data"
    folder.mkdir(parents=True)
    text = children.folder / f"{name}.openmetrics"
    recording.write(text, from_s)
    subprocess.run(
        [find_promtool(), "tsdb", "create-blocks-from", "openmetrics", "-q", "--max-block-duration=200h", text, folder],
        check=True,
        capture_output=True,
    )
    text.unlink()
    prometheus = Prometheus(children, PrometheusOptions((), {}, retention="10y"), name=name)
    prometheus.start()
    return prometheus
