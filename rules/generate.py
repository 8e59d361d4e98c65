"""Turn settings into files: rules, their unit tests, Alertmanager's configuration and the runbook pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rules.alert import Alert, Severity, SluicegateAction
from rules.catalogue import build_catalogue
from rules.own_receivers import BEGIN, END, PLACEHOLDERS, own_receivers
from rules.promql import duration
from rules.render import render
from rules.routing import (
    AUTOMATION_RECEIVER,
    HEARTBEAT_RECEIVER,
    NOBODY_RECEIVER,
    PAGES_RECEIVER,
    inhibitions,
)
from rules.scope import Scope
from rules.test_sets import TestSet, by_alerts, dark_sets, test_sets
from sluicegate.errors import SettingsError
from sluicegate.records import RECORDS, AlertName, Record
from sluicegate.settings import Settings

RULES_FILE = "sluicegate.rules.yml"
ALERTMANAGER_FILE = "alertmanager.yml"

# A slice is named by the first of its alerts, one with as many as these by none of them.
_FEW = 6
_WAKES = {
    Severity.PAGE: "a person, now",
    Severity.TICKET: "a person, in the morning",
    Severity.NONE: "nobody",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Hold one rule group: its rules are evaluated one after another, records before the alerts that read them."""

    name: str
    records: tuple[Record, ...]
    alerts: tuple[Alert, ...] = ()


def catalogue(settings: Settings) -> tuple[Alert, ...]:
    """Build the alerts of the settings' queue."""
    return build_catalogue(Scope(settings))


def groups(settings: Settings) -> tuple[Group, ...]:
    """Put the records that alerts read into one group with them, and what only panels plot into another."""
    alerts = chain(settings, catalogue(settings))
    plotted = tuple(record for record in RECORDS if record not in alerts.records)
    return (alerts, Group(f"sluicegate-{settings.queue}-panels", plotted))


def chain(settings: Settings, alerts: Sequence[Alert]) -> Group:
    """Put alerts into one group with the records that they read."""
    read = tuple(record for record in RECORDS if any(f"{record.name}{{" in alert.expression for alert in alerts))
    return Group(f"sluicegate-{settings.queue}-alerts", read, tuple(alerts))


def render_rules(settings: Settings, among: Sequence[Group] | None = None) -> str:
    """Render rule groups, by default all of the settings' queue, as a Prometheus rule file."""
    return render(
        "sluicegate.rules.yml.j2",
        queue=settings.queue,
        groups=groups(settings) if among is None else among,
        interval=duration(settings.monitoring.evaluation_interval_s),
        selector=Scope(settings).selector,
    )


def render_tests(settings: Settings, tests: TestSet, among: Sequence[Group] | None = None) -> str:
    """Render a set of promtool's unit tests for the rule file beside it."""
    return render(
        "sluicegate.test.yml.j2",
        rule_file=RULES_FILE,
        scrape_s=tests.scrape_s,
        evaluation_s=tests.evaluation_s,
        groups=[group.name for group in (groups(settings) if among is None else among)],
        tests=tests.tests,
    )


def slices(settings: Settings, *, disturbed: bool = False) -> Iterator[tuple[str, dict[str, str]]]:
    """Cut the tests up by what they expect: a name, and a rule file with those alerts alone beside their tests.

    `disturbed` takes those in which figures go wrong instead.

    Every evaluation of a test runs every rule of its file, so the slices take a tenth of the time of the whole.
    """
    every = catalogue(settings)
    for tests in (dark_sets if disturbed else test_sets)(settings, every):
        for number, (names, those) in enumerate(by_alerts(tests)):
            among = (chain(settings, [alert for alert in every if alert.name in names]),)
            yield (
                f"{tests.file.removesuffix('.test.yml')}-{number}-{names[0] if len(names) < _FEW else 'all'}",
                {RULES_FILE: render_rules(settings, among), tests.file: render_tests(settings, those, among)},
            )


def render_alertmanager(settings: Settings, *, bearer_token_file: Path | None = None, own: str = PLACEHOLDERS) -> str:
    """Render Alertmanager's configuration: the webhook, people's own receivers, and the inhibitions.

    Raises SettingsError when the automation service asks for a token and no file holds it for Alertmanager.
    """
    if (settings.automation.token or settings.automation.token_file) and bearer_token_file is None:
        raise SettingsError(
            "automation.token is set, but no file holds it for Alertmanager, so its webhooks would be refused.",
            "Write the token into a file that Alertmanager can read and pass --bearer-token-file FILE.",
        )
    return render(
        "alertmanager.yml.j2",
        monitoring=settings.monitoring,
        automation=AUTOMATION_RECEIVER,
        pages=PAGES_RECEIVER,
        heartbeat=HEARTBEAT_RECEIVER,
        nobody=NOBODY_RECEIVER,
        own=own,
        own_begin=BEGIN,
        own_end=END,
        actions=[action.value for action in SluicegateAction if action is not SluicegateAction.OBSERVE],
        page=Severity.PAGE.value,
        watchdog=AlertName.WATCHDOG,
        bearer_token_file=str(bearer_token_file) if bearer_token_file else None,
        inhibitions=inhibitions(catalogue(settings)),
    )


def render_runbook_page(alert: Alert) -> str:
    """Render the page that an alert's runbook_url leads to."""
    return render("runbook.md.j2", alert=alert, wakes=_WAKES[alert.severity])


def render_all(settings: Settings, out: Path, *, bearer_token_file: Path | None = None) -> dict[Path, str]:
    """Render the rules, their unit tests and Alertmanager's configuration, by where they belong.

    Raises UsageError where people's own receivers there would be lost.
    """
    own = own_receivers(out / ALERTMANAGER_FILE)
    return {
        out / RULES_FILE: render_rules(settings),
        **{out / tests.file: render_tests(settings, tests) for tests in test_sets(settings, catalogue(settings))},
        out / ALERTMANAGER_FILE: render_alertmanager(settings, bearer_token_file=bearer_token_file, own=own),
    }


def render_pages(settings: Settings, out: Path) -> dict[Path, str]:
    """Render the runbook page of every alert, by where it belongs."""
    return {out / f"{alert.name}.md": render_runbook_page(alert) for alert in catalogue(settings)}
