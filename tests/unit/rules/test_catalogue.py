"""Every alert of the catalogue keeps the promises that hold for all of them."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest

from rules.alert import Alert, Severity, SluicegateAction
from rules.burn_tests import TIERS, burn_tests
from rules.generate import catalogue, groups
from rules.scope import Scope, Timing
from sluicegate import records, telemetry
from sluicegate.gate import Runbook
from sluicegate.records import RECORDS, AlertName
from sluicegate.settings import Settings, default_settings
from tests.unit.rules.settings import ALL, awkward, fast

ALERTS = catalogue(default_settings())
_RECORD = re.compile(r"[a-z_]+:[a-z0-9_]+:(?:max|min)")
_METRICS = {value for name, value in vars(telemetry).items() if name.isupper() and isinstance(value, str)}


@pytest.fixture(params=ALERTS, ids=lambda alert: alert.name)
def alert(request: pytest.FixtureRequest) -> Alert:
    found = request.param
    assert isinstance(found, Alert)
    return found


def snake(name: str) -> str:
    """Turn SluicegateQueueAgeHigh into queue_age_high."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removeprefix("Sluicegate")).lower()


def test_names_are_unique_and_each_has_its_file(repository: Path) -> None:
    files = {path.stem for path in (repository / "rules" / "catalogue").glob("[a-z]*.py")}

    assert {snake(alert.name) for alert in ALERTS} == files
    assert len(ALERTS) == len(files)


def test_expression_parses_and_reads_only_records(alert: Alert) -> None:
    promql_parser.parse(alert.expression)

    written = {record.name for record in RECORDS}
    assert set(_RECORD.findall(alert.expression)) <= written
    for metric in _METRICS:
        assert f"{metric}{{" not in _RECORD.sub("", alert.expression)


def test_records_are_taken_from_metrics_that_exist() -> None:
    assert {record.metric for record in RECORDS} <= _METRICS
    assert len({record.name for record in RECORDS}) == len(RECORDS)
    for record in RECORDS:
        promql_parser.parse(record.expression('queue="default"'))


def test_no_alert_reads_utilization(alert: Alert) -> None:
    # How many jobs are in flight is compared with how many are running, which tells a leak; never with a limit.
    words = ("cpu", "memory", "load", *(() if alert.name == AlertName.LEASE_LEAK else (telemetry.WORKER_INFLIGHT,)))
    for word in words:
        assert word not in alert.expression


def test_every_alert_links_to_a_dashboard_with_its_queue_filled_in() -> None:
    of_runs = {AlertName.EXECUTOR_DEAD, AlertName.EXECUTOR_HOLDING, AlertName.RECOVERY_HOLD}
    for alert in catalogue(awkward()):
        uid = "sluicegate-runs" if alert.name in of_runs else "sluicegate-overview"
        assert alert.annotations["dashboard_url"].endswith(f"/d/{uid}/{uid}?var-queue=night-jobs")


def test_a_label_in_a_text_is_one_that_the_expression_keeps(alert: Alert) -> None:
    """A name that no series has would be rendered as nothing, and no tool would say so."""
    for text in alert.annotations.values():
        for label in re.findall(r"\$labels\.(\w+)", text):
            assert all(label in {**alert.labels, **case.labels} for case in alert.cases if case.fires)


def test_every_alert_carries_the_queue_and_its_action(alert: Alert) -> None:
    assert alert.labels["queue"] == "default"
    assert alert.labels["sluicegate_action"] == alert.action.value
    assert alert.labels["severity"] == alert.severity.value


def test_a_drain_names_the_runbook_that_the_webhook_opens() -> None:
    drains = [alert for alert in ALERTS if alert.action is SluicegateAction.DRAIN]

    assert len(drains) == 3
    assert {alert.labels["runbook"] for alert in drains} == {Runbook.DRAIN_AND_RECOVER.value}
    assert all(alert.severity is Severity.PAGE for alert in drains)


def test_runbook_url_leads_to_a_page_that_exists(alert: Alert, repository: Path) -> None:
    base = default_settings().monitoring.runbook_base_url
    page = repository / "docs" / "runbooks" / alert.runbook_url.removeprefix(base).lstrip("/")

    assert page.read_text().startswith(f"# {alert.name}\n")


def test_the_page_s_words_hold_no_measured_figure(alert: Alert) -> None:
    for text in alert.annotations.values():
        assert "$value" not in text


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(alert: Alert) -> None:
    fires = {case.fires for case in alert.cases}
    for tier in TIERS.get(alert.name, ()):
        tests = burn_tests(Scope(default_settings()), alert, tier)
        fires |= {expected.fires for test in tests for expected in test.expectations}

    assert fires == ({True} if alert.name == "SluicegateWatchdog" else {True, False})


def test_thresholds_and_timings_come_from_the_settings() -> None:
    by_name = {alert.name: alert for alert in catalogue(fast())}

    assert ">= 4\n" in by_name[AlertName.QUEUE_AGE_HIGH].expression
    assert ">= 5\n" in by_name[AlertName.QUEUE_AGE_CRITICAL].expression
    assert "< 1\n" in by_name[AlertName.DEADLINE_SLACK_LOW].expression
    assert by_name[AlertName.CONTROLLER_SILENT].expression.partition("\n")[0].endswith("> 3")
    assert {by_name[AlertName.QUEUE_AGE_HIGH].for_s, by_name[AlertName.PROVIDER_ERRORS_HIGH].for_s} == {1}


@pytest.mark.parametrize("name", ALL)
def test_no_alert_can_lapse_before_the_absence_of_figures_is_told(name: str) -> None:
    timing = Timing.of(ALL[name]())

    assert timing.keep_s > timing.absent_for_s + timing.evaluation_s


def test_another_queue_and_job_are_selected_where_the_settings_say_so() -> None:
    settings = awkward()

    assert Scope(settings).selector(records.QUEUE_AGE) == 'job="queues",queue="night-jobs"'
    assert Scope(settings).selector(records.EXECUTOR_SEEN) == 'job="sluicegate-automation",queue="night-jobs"'
    assert all('queue="default"' not in alert.expression for alert in catalogue(settings))


@pytest.mark.parametrize("name", ALL)
def test_what_an_alert_reads_is_recorded_before_it_in_its_own_group(name: str) -> None:
    settings: Settings = ALL[name]()
    chain, panels = groups(settings)

    read = {found for alert in chain.alerts for found in _RECORD.findall(alert.expression)}
    assert read == {record.name for record in chain.records}
    assert panels.alerts == ()
    assert {*chain.records, *panels.records} == set(RECORDS)
