"""What a slip of the hand can make of an alert: every operator finds its places, and each mutant is another alert."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import promql_parser
import pytest

from rules.alert import Alert
from rules.generate import catalogue, chain
from rules.mutation.mutants import Mutant, mutants
from sluicegate.records import AlertName
from sluicegate.settings import default_settings

SETTINGS = default_settings()
ALERTS = {alert.name: alert for alert in catalogue(SETTINGS)}
STEP_S = 2.0


def of(alert: Alert) -> list[Mutant]:
    return list(mutants(alert, chain(SETTINGS, [alert]).records, STEP_S))


@pytest.mark.parametrize("name", ALERTS)
def test_every_mutant_can_be_read_and_differs_from_its_alert_and_from_every_other(name: AlertName) -> None:
    alert, found = ALERTS[name], of(ALERTS[name])

    for mutant in found:
        promql_parser.parse(mutant.alert.expression)
        assert mutant.alert != alert or mutant.record is not None
    written = [(replace(one.alert, cases=()), one.record) for one in found]
    assert len(set(map(repr, written))) == len(written)


@pytest.mark.parametrize("name", ALERTS)
def test_no_duration_is_negative_however_slow_the_tests(name: AlertName) -> None:
    found = mutants(ALERTS[name], (), step_s=3600.0)

    assert min(min(one.alert.for_s, one.alert.keep_firing_for_s) for one in found) >= 0


def test_every_operator_finds_its_places_in_an_alert() -> None:
    counts = Counter(mutant.operator for mutant in of(ALERTS[AlertName.QUEUE_AGE_HIGH]))

    assert counts == {
        # The age's bound by a hundredth and by half, pending == 0 and recovering == 1 by one.
        "threshold": 4 + 2 + 2,
        "comparator": 2 + 1 + 1 + 1,
        "guard dropped": 3,
        "guard turned": 3,
        "window": 2,
        "for": 2,
        "keep": 3,
        "severity": 2,
        "action": 5,
        "label": 2,
        "condition": 1,
        "record": 2 * 4,
    }


def test_a_count_s_neighbour_is_one_more_and_a_measure_s_is_a_hundredth_more() -> None:
    changes = [one.change for one in of(ALERTS[AlertName.QUEUE_AGE_HIGH]) if one.operator == "threshold"]

    assert any(change.startswith(">= 20 to 20.2 ") for change in changes)
    assert any(change.startswith("== 0 to 1 ") for change in changes)
