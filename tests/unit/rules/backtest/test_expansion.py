"""Expressions on records, written on what the records are taken from."""

from __future__ import annotations

import promql_parser
import pytest

from rules.backtest.expansion import expand
from rules.generate import catalogue
from rules.scope import Scope
from sluicegate.records import RECORDS
from tests.unit.rules.settings import ALL

SCOPE = Scope(ALL["default"]())
AGE = 'queue_age_p95_seconds{job="sluicegate",queue="default",queue="default"'


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ('queue:queue_age_p95_seconds:max{queue="default"} >= 20', f"(max by (queue) ({AGE}}})) >= 20"),
        (
            'queue:queue_age_p95_seconds:max{queue="default"} offset 8s',
            f"(max by (queue) ({AGE}}} offset 8s))",
        ),
        (
            'deriv(queue:queue_age_p95_seconds:max{queue="default"}[30s])',
            f"deriv((max by (queue) ({AGE}}}))[30s:2s])",
        ),
        (
            'increase(queue:queue_age_p95_seconds:max{queue="default"}[30s] offset 1m)',
            f"increase((max by (queue) ({AGE}}}))[30s:2s] offset 1m)",
        ),
    ],
    ids=["instant", "offset", "range", "range and offset"],
)
def test_a_record_gives_way_to_its_expression(read: str, written: str) -> None:
    assert expand(read, SCOPE) == written


def test_figures_of_the_automation_service_are_read_from_its_own_page() -> None:
    record = next(record for record in RECORDS if record.source == "automation")
    assert 'job="sluicegate-automation"' in expand(SCOPE.series(record), SCOPE)


@pytest.mark.parametrize("name", ALL)
def test_every_alert_can_be_written_so_and_reads_no_record_any_more(name: str) -> None:
    settings = ALL[name]()
    names = {record.name for record in RECORDS}
    for alert in catalogue(settings):
        written = expand(alert.expression, Scope(settings))
        promql_parser.parse(written)
        assert not [one for one in names if one in written], alert.name


def test_a_record_of_somebody_else_stays_as_it_is() -> None:
    expression = 'instance:node_cpu_utilisation:rate{job="node"} > 0.9'
    assert expand(expression, SCOPE) == expression
