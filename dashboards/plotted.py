"""Ask a Prometheus for what a dashboard plots, as Grafana would: the same expressions, at steps of the same kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboards.model import Dashboard, Kind, Panel, Query
from dashboards.queries import closed_gate, filled, firing_alerts, legend_of
from sluicegate.prometheus import Prometheus
from sluicegate.svg import Line, Span
from sluicegate.telemetry import DRAIN_STATE

# Few enough that a picture stays small, many enough for every pixel of a panel.
_STEPS = 240
_LEAST_STEP_MS = 1000


@dataclass(frozen=True, slots=True)
class Plotted:
    """Hold one dashboard with its data: curves by panel id, and what is marked over all of them."""

    dashboard: Dashboard
    seconds: float
    lines: dict[int, tuple[Line, ...]]
    closings: tuple[Span, ...]
    alerts: tuple[Span, ...]


@dataclass(frozen=True)
class Plotter:
    """Ask for one queue between two instants (Unix ms)."""

    prometheus: Prometheus
    from_ms: int
    to_ms: int

    @property
    def step_ms(self) -> int:
        """Give the steps of the curves: whole seconds."""
        return max(_LEAST_STEP_MS, -(-(self.to_ms - self.from_ms) // _STEPS // 1000) * 1000)

    def plot(self, dashboard: Dashboard) -> Plotted:
        """Ask for everything on a dashboard."""
        panels = (panel for row in dashboard.rows for panel in row.panels)
        return Plotted(
            dashboard,
            (self.to_ms - self.from_ms) / 1000,
            {panel.id: self.lines(panel, dashboard.queue) for panel in panels},
            tuple(self._spans(closed_gate(), dashboard.queue, f"{{{{{DRAIN_STATE}}}}}")),
            tuple(self._spans(firing_alerts(), dashboard.queue, "{{alertname}}")),
        )

    def lines(self, panel: Panel, queue: str) -> tuple[Line, ...]:
        """Give the curves of a panel by their legends; of one that shows a number, that of the last instant."""
        return tuple(
            line
            for query in panel.queries
            for line in (self._now(query, queue) if panel.kind is Kind.STAT else self._course(query, queue))
        )

    def _now(self, query: Query, queue: str) -> Iterable[Line]:
        for one in self.prometheus.at(filled(query.expression, queue), self.to_ms):
            yield Line(legend_of(query.legend, one.labels), tuple((0.0, value) for _, value in one.samples))

    def _course(self, query: Query, queue: str) -> Iterable[Line]:
        found = self.prometheus.over(filled(query.expression, queue), self.from_ms, self.to_ms, self.step_ms)
        for one in found:
            values = dict(one.samples)
            points = (
                ((at - self.from_ms) / 1000, values.get(at)) for at in range(self.from_ms, self.to_ms + 1, self.step_ms)
            )
            yield Line(legend_of(query.legend, one.labels), tuple(points))

    def _spans(self, expression: str, queue: str, legend: str) -> Iterable[Span]:
        for line in self._course(Query(expression, legend), queue):
            begun: float | None = None
            for at_s, value in (*line.points, (line.points[-1][0] + self.step_ms / 1000, None)):
                if value is not None and begun is None:
                    begun = at_s
                elif value is None and begun is not None:
                    yield Span(line.label, begun, at_s)
                    begun = None
