"""A week in which the queue ages once for nothing, once until deadlines are missed, and once is drained in time.

Every morning the workers are busy for an hour.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from drill.children import Children
from rules.backtest.history import Inputs
from rules.cases import Signal
from rules.situations import gate, jobs
from sluicegate import telemetry
from sluicegate.gate import DrainState
from sluicegate.settings import Settings
from tests.recorded import DAY_S, Episode, Recording, by_the_minute, serve

MISSED = f'{telemetry.CLASS_DEADLINE_OUTCOMES_TOTAL}{{class="lint",outcome="missed"}}'
AGE = telemetry.QUEUE_AGE_P95_SECONDS
BUSY = telemetry.WORKER_INFLIGHT
WEEK_S = 7 * DAY_S
AGED_S, MISSED_S, CLOSED_S = 2 * DAY_S, 3 * DAY_S, 4 * DAY_S
MORNINGS = [
    Episode(day * DAY_S + 9 * 3600, day * DAY_S + 10 * 3600, {BUSY: Signal(6), jobs("running"): Signal(6)})
    for day in range(7)
]
WEEK = (
    *MORNINGS,
    Episode(AGED_S, AGED_S + 1200, {AGE: Signal(130)}),
    Episode(MISSED_S, MISSED_S + 1800, {AGE: Signal(200)}),
    Episode(MISSED_S + 600, WEEK_S, {MISSED: Signal(5)}),
    Episode(MISSED_S + 900, WEEK_S, {MISSED: Signal(12)}),
    Episode(CLOSED_S, CLOSED_S + 600, {AGE: Signal(200)}),
    Episode(CLOSED_S, CLOSED_S + 900, gate(DrainState.DRAIN)),
)
HEALTHY = {MISSED: Signal(0), BUSY: Signal(2), jobs("running"): Signal(2)}


def settings_file(folder: Path, settings: Settings) -> Path:
    path = folder / "sluicegate.yaml"
    path.write_text(yaml.safe_dump(settings.model_dump(mode="json")), encoding="utf-8")
    return path


class Week:
    """Hold a Prometheus with a week of history, and the way to replay it by the command line."""

    def __init__(self, url: str, begins_s: float, settings: Path) -> None:
        self.url, self.begins_s, self.settings = url, begins_s, settings

    def words(self, *more: str, from_s: float = 0, to_s: float = WEEK_S) -> list[str]:
        """Give a command's words with those that name this Prometheus and a part of the week."""
        since, until = (
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.begins_s + at_s)) for at_s in (from_s, to_s)
        )
        where = ["--settings", str(self.settings), "--prometheus-url", self.url, "--since", since, "--until", until]
        return [*more, *where]


def served(children: Children, folder: Path, inputs: Inputs) -> Week:
    settings = by_the_minute()
    begins_s = time.time() // 60 * 60 - WEEK_S
    of_metrics = inputs is Inputs.METRICS
    recording = Recording(settings, WEEK_S, WEEK, HEALTHY, with_records=not of_metrics, with_metrics=of_metrics)
    server = serve(children, recording, begins_s, name=f"week-of-{inputs}")
    return Week(server.url, begins_s, settings_file(folder, settings))


@pytest.fixture(scope="session")
def week(session_children: Children, tmp_path_factory: pytest.TempPathFactory) -> Week:
    return served(session_children, tmp_path_factory.mktemp("week"), Inputs.RECORDS)
