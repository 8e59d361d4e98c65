"""Certify how late a page can come: from the moment its figures are true to the webhook, added up term by term.

Each term is the longest that its stage takes while every stage works: no scrape is lost, Prometheus keeps its pace, one
Alertmanager runs alone. What a lost scrape costs is told by the alerts on telemetry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rules.alert import Alert, Severity
from rules.formats import CHAINED, Format
from rules.generate import Group, groups
from rules.promql import number
from sluicegate.settings import MonitoringSettings, Settings

# So much of a class's deadline must be left when its page arrives, or nothing that it asks for still helps.
LEAST_LEFT = 0.25
# Evaluating the rules and two posts on a network of one's own.
DELIVERY_S = 1.0
_SCRAPE = "monitoring.scrape_interval_s"
_EVALUATION = "monitoring.evaluation_interval_s"


@dataclass(frozen=True, slots=True)
class Term:
    """Hold one stage's longest time in seconds; `setting` is what makes it shorter, empty where nothing does."""

    name: str
    seconds: float
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Hold the worst case of one page, as its terms."""

    alert: Alert
    terms: tuple[Term, ...]

    @property
    def worst_s(self) -> float:
        """Give the seconds from signal to webhook that are never exceeded."""
        return sum(term.seconds for term in self.terms)

    @property
    def largest(self) -> Term:
        """Give the largest term that a setting makes shorter."""
        return max((term for term in self.terms if term.setting), key=lambda term: term.seconds)

    def left(self, deadline_s: float) -> float:
        """Give the share of a deadline that is left when the page arrives; under 0 it comes after it."""
        return 1 - self.worst_s / deadline_s


@dataclass(frozen=True, slots=True)
class Refusal:
    """Say that a page leaves too little of a class's deadline."""

    certificate: Certificate
    class_name: str
    deadline_s: float

    @property
    def sentence(self) -> str:
        """Name the alert, the class, what is left, and the term to cut."""
        left_s = self.deadline_s - self.certificate.worst_s
        least_s = self.deadline_s * LEAST_LEFT
        largest = self.certificate.largest
        needed_s = least_s - left_s
        enough = f"to {number(largest.seconds - needed_s)} s or less" if largest.seconds > needed_s else "first of all"
        return (
            f"{self.certificate.alert.name} can take {number(self.certificate.worst_s)} s, which leaves"
            f" {number(left_s)} s of the {number(self.deadline_s)} s of class {self.class_name}, under the least of"
            f" {number(least_s)} s: cut `{largest.name}` from {number(largest.seconds)} s {enough}"
            f" (`{largest.setting}`)."
        )


def certify(settings: Settings, shape: Format = Format.PROMETHEUS) -> tuple[Certificate, ...]:
    """Certify every page of the settings' queue, as one of the formats has its rules evaluated."""
    among = groups(settings)
    return tuple(
        Certificate(
            alert, tuple(_terms(settings, group if shape not in CHAINED else replace(group, records=()), alert))
        )
        for group in among
        for alert in group.alerts
        if alert.severity is Severity.PAGE
    )


def refusals(settings: Settings, certificates: Sequence[Certificate]) -> tuple[Refusal, ...]:
    """Return what leaves too little; a page that waits by design is held against no deadline."""
    return tuple(
        Refusal(certificate, name, declared.deadline_s)
        for certificate in certificates
        if not certificate.alert.waits_by_design
        for name, declared in settings.contract.classes.items()
        if certificate.left(declared.deadline_s) < LEAST_LEFT
    )


def _terms(settings: Settings, group: Group, alert: Alert) -> Iterator[Term]:
    monitoring = settings.monitoring
    interval_s = monitoring.evaluation_interval_s
    yield Term("scrape interval", monitoring.scrape_interval_s, _SCRAPE)
    # Prometheus gives a scrape up after an interval at the latest.
    budget_s = settings.exporter.scrape_budget_s
    is_budget = budget_s <= monitoring.scrape_interval_s
    answer_s = min(budget_s, monitoring.scrape_interval_s)
    yield Term("scrape answer", answer_s, "exporter.scrape_budget_s" if is_budget else _SCRAPE)
    yield Term("evaluation interval", interval_s, _EVALUATION)
    yield Term("chained groups", interval_s * chained_groups(group, alert), _EVALUATION)
    yield Term("what the expression waits for", alert.seen_after_s, _SCRAPE)
    held_s = math.ceil(round(alert.for_s / interval_s, 9)) * interval_s
    yield Term("for", held_s, "monitoring.alert_for_s" if alert.for_s == monitoring.alert_for_s else _SCRAPE)
    yield _grouping(monitoring)
    yield Term("delivery", DELIVERY_S)


def chained_groups(group: Group, alert: Alert) -> int:
    """Count the groups before the alert's own: none where every record that it reads is recorded before it there."""
    recorded = {record.name for record in group.records}
    return int(any(name not in recorded for name in alert.reads))


def _grouping(monitoring: MonitoringSettings) -> Term:
    """Give the longer of Alertmanager's two waits: a new group's, and that of a group which has told already."""
    if monitoring.group_wait_s > monitoring.group_interval_s:
        return Term("group wait", monitoring.group_wait_s, "monitoring.group_wait_s")
    return Term("group interval", monitoring.group_interval_s, "monitoring.group_interval_s")
