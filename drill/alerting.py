"""Bring up the drill's real Prometheus and Alertmanager with the generated rules and routing, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from drill.children import Children
from drill.controls import PrometheusControl
from drill.monitoring import Alertmanager, Prometheus, PrometheusOptions
from drill.ports import LOOPBACK
from rules.generate import render_alertmanager, render_rules
from sluicegate.errors import SluicegateError
from sluicegate.settings import MonitoringSettings, Settings

_READY_WITHIN_S = 30.0
_POLL_S = 0.1
_NO_RULES = "groups: []\n"


class Alerting:
    """Start Prometheus first, then point it at the parts, then give it its rules."""

    def __init__(self, children: Children, monitoring: MonitoringSettings) -> None:
        self._monitoring = monitoring
        self._rule_file = children.folder / "sluicegate.rules.yml"
        self._children = children
        self._alertmanager: Alertmanager | None = None
        self._prometheus = Prometheus(children, self._options({}))
        self._control: PrometheusControl | None = None

    def start_prometheus(self) -> None:
        """Start it before what it is to look at.

        It takes new targets every five seconds only, whatever the intervals, so its first five run meanwhile.
        """
        self._rule_file.write_text(_NO_RULES, encoding="utf-8")
        self._prometheus.start()
        self._control = PrometheusControl(self._prometheus.url)

    def start_alertmanager(self, settings: Settings) -> None:
        """Start it with the settings' webhook, and tell Prometheus of it and of the parts."""
        self._alertmanager = Alertmanager(self._children, render_alertmanager(settings))
        self._alertmanager.start()
        job = settings.monitoring.exporter_job
        targets = {
            job: (f"{LOOPBACK}:{settings.exporter.port}",),
            settings.monitoring.automation_job: (f"{LOOPBACK}:{settings.automation.port}",),
        }
        self._prometheus.reload(self._options(targets))

    def load_rules(self, settings: Settings, pause: Callable[[float], None]) -> None:
        """Load the generated rules once the figures are there; before, they would rightly say that they are absent."""
        control = self.control
        _until(lambda: all(control.healthy_targets().values() or (False,)), "Prometheus scrapes the parts", pause)
        self._rule_file.write_text(render_rules(settings), encoding="utf-8")
        self._prometheus.reload()
        _until(lambda: bool(control.rule_groups()), "Prometheus has loaded the rules", pause)

    def close(self) -> None:
        """Close this process's own connections; safe twice and before start."""
        if self._control is not None:
            self._control.close()

    @property
    def control(self) -> PrometheusControl:
        """Return the way to Prometheus; raises before its start."""
        if self._control is None:
            raise SluicegateError("The drill's Prometheus was not started yet.")
        return self._control

    def describe(self) -> tuple[str, ...]:
        """Return what runs, with versions and paths."""
        programs = (self._prometheus, self._alertmanager)
        return tuple(program.describe() for program in programs if program is not None)

    def _options(self, targets: Mapping[str, Sequence[str]]) -> PrometheusOptions:
        return PrometheusOptions(
            rule_files=(self._rule_file,),
            targets=targets,
            scrape_interval_s=self._monitoring.scrape_interval_s,
            evaluation_interval_s=self._monitoring.evaluation_interval_s,
            alertmanagers=(self._alertmanager.address,) if self._alertmanager is not None else (),
        )


def _until(holds: Callable[[], bool], what: str, pause: Callable[[float], None]) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while not holds():
        if time.monotonic() >= deadline:
            raise SluicegateError(f"The drill waited {_READY_WITHIN_S:g} s for this in vain: {what}.")
        pause(_POLL_S)
