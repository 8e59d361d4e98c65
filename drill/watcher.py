"""Look at a running drill: figures, gate log, runs, workers and alerts, all through the doors that anybody has."""

from __future__ import annotations

import time

from drill.controls import PartSilent, PrometheusControl
from drill.timeline import Look
from sluicegate.gate import Runbook as LockHolder
from sluicegate.run_replies import RunHistory
from sluicegate.store import Store

_LOG_ENTRIES = 500
# Those beside the lock are among them.
_RUNS = 20
_SLOW_LOOK_EVERY_S = 0.5


class Watcher:
    """Take whole looks. What changes slowly, or costs an HTTP call, is asked for twice a second only."""

    def __init__(self, store: Store, prometheus: PrometheusControl | None) -> None:
        self._store = store
        self._prometheus = prometheus
        self._firing: tuple[str, ...] = ()
        self._asked_at = -float("inf")

    def look(self) -> Look:
        """Read everything once; raises StoreError where the queue's server does not answer."""
        if time.monotonic() - self._asked_at >= _SLOW_LOOK_EVERY_S:
            self._asked_at = time.monotonic()
            self._firing = self._ask_prometheus()
        telemetry = self._store.observe()
        gate_log = self._store.gate_log(_LOG_ENTRIES)
        return Look(telemetry, tuple(reversed(gate_log)), self.runs(), self._store.workers(), self._firing)

    def runs(self) -> tuple[RunHistory, ...]:
        """Read the lock-holding runs with their journals, oldest first."""
        held = [run for run in reversed(self._store.runs(_RUNS)) if run.runbook in set(LockHolder)]
        found = (self._store.run(run.run_id) for run in held)
        return tuple(history for history in found if history is not None)

    def _ask_prometheus(self) -> tuple[str, ...]:
        if self._prometheus is None:
            return ()
        try:
            return self._prometheus.firing()
        except PartSilent:
            return self._firing  # the screen's alone; the verdict asks again and fails without an answer
