"""`queue stats` shows what the exporter shows, to a person and to a script."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sluicegate.queue_stats import stats_body, stats_json, stats_text
from sluicegate.telemetry import OTHER_CLASS, ClassFigures, Part, Telemetry
from tests.exported import page_of
from tests.readings import EMPTY, with_gate
from tests.unit.exporter.telemetries import BUSY, LINT_FIX

# An age and the instant of the reading give it: `at_ms` is in the body.
COMPUTED = {"queue_age_p95_ready_timestamp_seconds"}
IDLE = ClassFigures(0, 0, 0, 0, 0, 0.0, 0.0, None, 0, None, younger=(0,) * 6)


@pytest.mark.parametrize(
    "telemetry", [BUSY, EMPTY, replace(BUSY, damaged=frozenset(Part))], ids=["busy", "empty", "hurt"]
)
def test_every_figure_without_labels_of_its_own_is_there_with_the_exporters_value(telemetry: Telemetry) -> None:
    body = stats_body(telemetry)
    shown = page_of(telemetry)
    for (name, *labels), value in page_of(BUSY).items():
        own = name.removeprefix("sluicegate_")
        if not labels and own not in COMPUTED and not name.endswith("_total"):
            assert body[own] == shown.get((name,)), f"{name}, which is {value} when busy"


def test_every_figure_of_a_class_is_there_with_the_exporters_value() -> None:
    body = stats_body(BUSY)["classes"]["lint-fix"]

    for (name, *labels), value in page_of(BUSY).items():
        own = name.removeprefix("sluicegate_class_")
        if labels == ["lint-fix"] and own not in COMPUTED and not name.endswith("_total"):
            assert body[own] == value


def test_totals_thresholds_and_jobs_by_state_are_there() -> None:
    body = stats_body(BUSY)

    assert body["counters"]["calls:5xx"] == 4
    assert body["classes"]["lint-fix"]["counters"]["met"] == 40
    assert body["threshold"]["reject_age_p95_seconds"] == 20
    assert body["jobs"] == {
        "ready": 4,
        "delayed": 2,
        "running": 3,
        "unknown": 1,
        "blocked": 0,
        "doomed": 2,
        "canaries": 1,
    }
    assert json.loads(stats_json(BUSY)) == json.loads(json.dumps(body))


def test_a_person_sees_what_decides_first_and_a_row_a_class() -> None:
    telemetry = with_gate(replace(BUSY, classes={"lint-fix": LINT_FIX, OTHER_CLASS: IDLE}), pin="operator")

    assert stats_text(telemetry).splitlines() == [
        "queue default: gate admit, pinned: operator",
        "age p50 6.0 s, p95 12.5 s, p99 14.0 s, oldest 14.2 s",
        "slack p1 -3.0 s, p10 -1.5 s, p50 20.0 s",
        "provider 6.7% 5xx, 3.3% timeouts of 60 calls in 30 s",
        "in flight 3, predicted wait 2.2 s",
        f"{'':<20}    ready  delayed  running  unknown  blocked   doomed    age p95  slack p10",
        f"{'lint-fix':<20}        4        2        3        1        0        2     12.5 s     -1.5 s",
        f"{'all':<20}        4        2        3        1        0        2     12.5 s     -1.5 s",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"deadline_slack_p10_seconds": None}, "slack no unfinished job"),
        ({"damaged": frozenset({Part.READY, Part.CLOCK})}, "damaged by hand, so not shown: clock, ready"),
        ({"damaged": frozenset({Part.RUNNING})}, "in flight ?, predicted wait 2.2 s"),
        ({"provider": EMPTY.provider}, "provider no 5xx, no timeouts of 0 calls in 30 s"),
        ({"damaged": frozenset({Part.READY})}, "age not known"),
        ({"deadline_slack_p10_seconds": None, "damaged": frozenset({Part.DEADLINES})}, "slack not known"),
        ({"damaged": frozenset({Part.PROVIDER})}, "provider not known"),
        ({"damaged": frozenset({Part.COMPLETIONS})}, "in flight 3, predicted wait ?"),
        (
            {"damaged": frozenset({Part.READY, Part.DEADLINES})},
            f"{'lint-fix':<20}        ?        ?        ?        1        0        ?          ?          ?",
        ),
        ({"broken_counters": frozenset({("", "admitted")})}, "damaged by hand, so not shown: counters"),
    ],
)
def test_what_is_not_known_is_not_shown_as_a_number(changes: dict[str, Any], line: str) -> None:
    assert line in stats_text(replace(BUSY, **changes)).splitlines()


def test_undeclared_classes_have_a_row_once_they_have_a_job() -> None:
    telemetry = replace(BUSY, classes={OTHER_CLASS: replace(IDLE, ready=1)})

    assert any(line.startswith(OTHER_CLASS) for line in stats_text(telemetry).splitlines())


def test_a_lost_contract_is_no_empty_queue() -> None:
    lost = with_gate(replace(BUSY, settings_digest="", deadline_slack_p10_seconds=None, classes={}), initialised=True)

    said = stats_text(lost).splitlines()

    assert "the contract in Redis is lost, so nothing can be counted" in said
    assert {"age not known", "slack not known", "provider not known", "in flight ?, predicted wait ?"} <= set(said)
    assert said[-1] == f"{'all':<20}        ?        ?        ?        ?        ?        ?          ?          ?"
