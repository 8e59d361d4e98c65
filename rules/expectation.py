"""What one unit test of promtool says: series, and which alert fires when, with what labels and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rules.alert import Alert
from rules.promql import duration
from sluicegate.records import RECORDS


@dataclass(frozen=True, slots=True)
class Expectation:
    """Say how often an alert fires at a time in seconds: once for each set of labels beside its own, or not at all."""

    at_s: float
    alert: Alert
    instances: tuple[Mapping[str, str], ...] = ()
    why: str = ""

    @property
    def fires(self) -> bool:
        return bool(self.instances)

    @property
    def labels(self) -> tuple[dict[str, str], ...]:
        """Give the labels of each alert that fires."""
        return tuple({**self.alert.labels, **extra} for extra in self.instances)

    def annotations(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Fill the label placeholders as Prometheus will."""
        filled = {}
        for name, text in self.alert.annotations.items():
            for label, value in labels.items():
                text = text.replace("{{ $labels." + label + " }}", value)  # noqa: PLW2901 (one replacement a label)
            filled[name] = text
        return filled


@dataclass(frozen=True, slots=True)
class Watch:
    """Say that some of these alerts fire at every evaluation of a stretch of time, or that none does at any of them."""

    ends_s: float
    lasts_s: float
    evaluation_s: float
    alerts: tuple[Alert, ...]
    fires: bool

    @property
    def expression(self) -> str:
        """Write the least number of them that fire, or the most."""
        names = "|".join(alert.name for alert in self.alerts)
        firing = f'(count(ALERTS{{alertstate="firing",alertname=~"{names}"}}) or on () vector(0))'
        window = f"[{duration(self.lasts_s)}:{duration(self.evaluation_s)}]"
        if self.fires:
            return f"min_over_time({firing}{window}) >= bool 1"
        return f"max_over_time({firing}{window})"


@dataclass(frozen=True, slots=True)
class UnitTest:
    """Hold one test: series as promtool spells them, what is expected when, and what is watched for how long."""

    name: str
    series: Mapping[str, str]
    expectations: tuple[Expectation, ...]
    watches: tuple[Watch, ...] = ()

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Give the alerts that it says something of."""
        watched = (alert for watch in self.watches for alert in watch.alerts)
        found = {alert.name: alert for alert in (*(one.alert for one in self.expectations), *watched)}
        return tuple(found.values())

    def trimmed(self) -> UnitTest:
        """Leave out the series that none of its alerts reads: they would only make it long."""
        read = "\n".join(alert.expression for alert in self.alerts)
        metrics = {record.metric for record in RECORDS if f"{record.name}{{" in read}
        series = {name: values for name, values in self.series.items() if name.partition("{")[0] in metrics}
        return replace(self, series=series or self.series)
