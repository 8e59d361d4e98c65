"""What every alert of one queue is built from: its settings, its thresholds, and timings that fit together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from rules.promql import duration, escape, matchers
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.policy import Thresholds
from sluicegate.records import DASHBOARD_UID, RUNS_DASHBOARD_UID, AlertName, Record, Source
from sluicegate.settings import Settings
from sluicegate.telemetry import DRAIN_STATE, PENDING_STATE, QUEUE_LABEL, STATE_LABEL

# Scrapes that may fail before the figures count as gone; one lost scrape is nobody's concern.
_LOST_SCRAPES = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """Hold the durations of the rules, all in seconds."""

    scrape_s: float
    evaluation_s: float
    for_s: float
    keep_s: float
    absent_for_s: float
    stale_after_s: float

    @classmethod
    def of(cls, settings: Settings) -> Timing:
        """Derive what must fit together.

        A firing alert is kept at least until the alert for missing telemetry has joined it: figures that vanish must
        never look like a recovery. So `keep_s` is `keep_firing_for_s`, or longer where that were too short.
        """
        monitoring = settings.monitoring
        absent_for_s = max(monitoring.alert_for_s, _LOST_SCRAPES * monitoring.scrape_interval_s)
        return cls(
            scrape_s=monitoring.scrape_interval_s,
            evaluation_s=monitoring.evaluation_interval_s,
            for_s=monitoring.alert_for_s,
            keep_s=max(monitoring.keep_firing_for_s, absent_for_s + 3 * monitoring.evaluation_interval_s),
            absent_for_s=absent_for_s,
            stale_after_s=(_LOST_SCRAPES + 1) * monitoring.scrape_interval_s,
        )

    @property
    def blur_s(self) -> float:
        """Give how old a figure can be at an evaluation: nothing where each falls on a scrape."""
        between = round(self.evaluation_s * 1000) % round(self.scrape_s * 1000)
        return self.scrape_s if between else 0


@dataclass(frozen=True, slots=True)
class Scope:
    """Hold one queue's settings and write the pieces of PromQL that several alerts share."""

    settings: Settings

    @property
    def queue(self) -> str:
        return self.settings.queue

    @property
    def thresholds(self) -> Thresholds:
        return self.settings.contract.thresholds

    @property
    def timing(self) -> Timing:
        return Timing.of(self.settings)

    def selector(self, record: Record) -> str:
        """Select what a record is taken from: this queue's figures on the page that holds them."""
        monitoring = self.settings.monitoring
        job = monitoring.automation_job if record.source is Source.AUTOMATION else monitoring.exporter_job
        return matchers({"job": job, QUEUE_LABEL: self.queue})

    @property
    def dashboard_url(self) -> str:
        """Link to the overview with its queue filled in."""
        return self._dashboard_url(DASHBOARD_UID)

    @property
    def runs_dashboard_url(self) -> str:
        """Link to the dashboard of the runs, for what is said of one under way."""
        return self._dashboard_url(RUNS_DASHBOARD_UID)

    def _dashboard_url(self, uid: str) -> str:
        base = self.settings.monitoring.dashboard_base_url.rstrip("/")
        return f"{base}/d/{uid}/{uid}?var-queue={quote(self.queue, safe='')}"

    def runbook_url(self, alert: AlertName) -> str:
        return f"{self.settings.monitoring.runbook_base_url.rstrip('/')}/{alert}.md"

    def series(self, record: Record, **labels: str) -> str:
        """Select this queue's series of a record."""
        return f"{record.name}{{{matchers({QUEUE_LABEL: self.queue, **labels})}}}"

    def one_of(self, record: Record, label: str, values: Iterable[str]) -> str:
        """Select this queue's series of a record that have one of these values of a label."""
        either = "|".join(escape(value) for value in values)
        return f'{record.name}{{{matchers({QUEUE_LABEL: self.queue})},{label}=~"{either}"}}'

    def drain_state(self, state: DrainState) -> str:
        """Select the gate's series for one state."""
        return self.series(records.DRAIN_STATE, **{DRAIN_STATE: state.value})

    @property
    def unless_recovering(self) -> str:
        """Guard: in `recovering` the kept backlog is old by design."""
        return f"unless on ({QUEUE_LABEL}) {self.drain_state(DrainState.RECOVERING)} == 1"

    @property
    def unless_in_a_run(self) -> str:
        """Guard: a drain and its recovery take their time by design."""
        closed = self.one_of(records.DRAIN_STATE, DRAIN_STATE, (DrainState.DRAIN, DrainState.RECOVERING))
        return f"unless on ({QUEUE_LABEL}) {closed} == 1"

    @property
    def unless_unproven(self) -> str:
        """Guard: in `recovering` the canaries come first, and until they are green everything is held anyway."""
        return (
            f"unless on ({QUEUE_LABEL}) ({self.drain_state(DrainState.RECOVERING)} == 1"
            f" and on ({QUEUE_LABEL}) {self.series(records.CANARY_OK_COUNT)}"
            f" < {self.settings.contract.canaries_required})"
        )

    @property
    def unless_empty(self) -> str:
        """Guard: with nothing waiting, an age is a leftover."""
        return f"unless on ({QUEUE_LABEL}) {self.series(records.JOBS, **{STATE_LABEL: PENDING_STATE})} == 0"

    @property
    def unless_frozen(self) -> str:
        """Guard: figures that stand still say nothing about now."""
        return f"unless on ({QUEUE_LABEL}) {self.frozen}"

    @property
    def frozen(self) -> str:
        """Compare the reading's own timestamp with itself a moment ago, so that no two clocks have to agree."""
        snapshot = self.series(records.SNAPSHOT)
        return f"{snapshot} == {snapshot} offset {duration(self.timing.stale_after_s)}"


def guarded(condition: str, *guards: str) -> str:
    """Write a condition and its guards, one a line."""
    return "\n".join((condition, *guards))
