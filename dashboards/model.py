"""What a dashboard is made of, as values; `grafana.py` spells them as Grafana's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sluicegate.records import AlertName


class Kind(StrEnum):
    """Name the panels in use, as Grafana does."""

    STAT = "stat"
    LINES = "timeseries"
    STATES = "state-timeline"


class Unit(StrEnum):
    """Name the units in use, as Grafana does."""

    SECONDS = "s"
    RATIO = "percentunit"
    COUNT = "short"
    YES_NO = "bool_yes_no"


class Colour(StrEnum):
    """Say how bad it is."""

    GOOD = "green"
    NOTICE = "yellow"
    WARN = "orange"
    BAD = "red"
    UNDER_WAY = "blue"
    GREY = "text"


@dataclass(frozen=True, slots=True)
class Query:
    """Hold one PromQL expression and how its series are named in the legend."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Step:
    """Colour everything from `value` up; the first step of a panel has none and colours the rest."""

    value: float | None
    colour: Colour


@dataclass(frozen=True, slots=True)
class Panel:
    """Hold one panel. Its id never changes: links to it and to its alerts' pages depend on it.

    `says` is the description; the alerts that compare what it plots are named after it. `no_value` tells what an empty
    panel means. `colours` are those of series by their legend, where the steps say too little. What lies above
    `at_most` is off the scale. Width is in Grafana's 24 columns.
    """

    id: int
    title: str
    says: str
    kind: Kind
    unit: Unit
    queries: tuple[Query, ...]
    no_value: str
    alerts: tuple[AlertName, ...] = ()
    steps: tuple[Step, ...] = (Step(None, Colour.GOOD),)
    colours: tuple[tuple[str, Colour], ...] = ()
    at_most: float | None = None
    width: int = 12
    height: int = 8

    @property
    def description(self) -> str:
        """Give what the panel says, and which alerts watch it."""
        if not self.alerts:
            return f"{self.says} No alert of its own."
        noun = "Alert" if len(self.alerts) == 1 else "Alerts"
        return f"{self.says} {noun}: {', '.join(self.alerts)}."


@dataclass(frozen=True, slots=True)
class Row:
    """Hold the panels under one heading; its id never changes either."""

    id: int
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Hold a dashboard; links to it depend on its uid, its file has the uid's name."""

    uid: str
    title: str
    says: str
    rows: tuple[Row, ...]
    queue: str
