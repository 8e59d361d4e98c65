"""The nine stable fields mean what contract §2 says, in every state a queue can be in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from exporter.families import queue_families
from sluicegate.gate import DrainState, RollbackReason
from sluicegate.telemetry import STABLE_FIELDS, ProviderWindow
from tests.readings import EMPTY, with_gate
from tests.unit.exporter.telemetries import BUSY, samples, value, values


def test_the_names_are_the_nine_of_the_contract_without_a_prefix() -> None:
    names = [metric.name for metric in queue_families([BUSY])]

    assert names[:9] == list(STABLE_FIELDS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("queue_age_p95_seconds", 12.5),
        ("oldest_job_age_seconds", 14.25),
        ("deadline_slack_p10_seconds", -1.5),
        ("provider_5xx_rate", 4 / 60),
        ("provider_timeout_rate", 2 / 60),
        ("worker_inflight", 3),
        ("canary_ok_count", 0),
    ],
)
def test_a_busy_queue_shows_each_figure(name: str, expected: float) -> None:
    assert value(BUSY, name) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("queue_age_p95_seconds", 0),
        ("oldest_job_age_seconds", 0),
        ("worker_inflight", 0),
        ("deadline_slack_p10_seconds", None),
        ("provider_5xx_rate", None),
        ("provider_timeout_rate", None),
    ],
)
def test_an_empty_queue_has_age_zero_and_no_slack_and_no_rate(name: str, expected: float | None) -> None:
    assert value(EMPTY, name) == expected


def test_a_window_of_good_calls_has_a_rate_of_zero() -> None:
    healthy = replace(EMPTY, provider=ProviderWindow(seconds=30.0, calls=5, status_5xx=0, timeouts=0))

    assert (value(healthy, "provider_5xx_rate"), value(healthy, "provider_timeout_rate")) == (0.0, 0.0)


@pytest.mark.parametrize("state", list(DrainState))
def test_exactly_one_drain_state_is_one(state: DrainState) -> None:
    shown = values(with_gate(BUSY, drain_state=state.value), "drain_state")

    assert shown == {other.value: float(other is state) for other in DrainState}
    assert set(shown) == {"admit", "reject_new", "drain", "recovering"}


@pytest.mark.parametrize("changes", [{"readable": False}, {"drain_state": "opne"}, {"drain_state": ""}])
def test_a_gate_that_cannot_be_read_shows_drain_and_says_so(changes: dict[str, object]) -> None:
    telemetry = with_gate(BUSY, **changes)

    shown = values(telemetry, "drain_state")

    assert [state for state, at in shown.items() if at] == ["drain"]
    assert value(telemetry, "sluicegate_gate_readable") == 0


@pytest.mark.parametrize("reason", [None, *RollbackReason, "felt like it"])
def test_at_most_one_rollback_reason_is_one_and_free_text_is_no_label(reason: str | None) -> None:
    shown = values(with_gate(BUSY, rollback_reason=reason), "rollback_reason")

    assert set(shown) == {
        "canary_failed",
        "queue_age_not_recovering",
        "duplicate_side_effect",
        "manual_operator_hold",
    }
    assert [name for name, at in shown.items() if at] == ([str(reason)] if reason in set(RollbackReason) else [])


def test_every_sample_carries_its_queue_and_a_stateset_names_its_label_as_itself() -> None:
    nightly = replace(BUSY, queue="nightly")

    families = queue_families([BUSY, nightly])

    for metric in families:
        assert {sample.labels["queue"] for sample in metric.samples} <= {"default", "nightly"}
    by_queue = [s.labels for m in families if m.name == "drain_state" for s in m.samples]
    assert {tuple(labels) for labels in by_queue} == {("queue", "drain_state")}
    assert len(by_queue) == 8


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "field", ["queue_age_p95_seconds", "oldest_job_age_seconds", "deadline_slack_p10_seconds", "predicted_wait_seconds"]
)
def test_a_value_that_is_no_number_is_left_out_and_never_shown(field: str, bad: float) -> None:
    changes: dict[str, Any] = {field: bad}
    telemetry = replace(BUSY, **changes)

    families = queue_families([telemetry])

    assert all(math.isfinite(sample.value) for metric in families for sample in metric.samples)
    name = field if field in STABLE_FIELDS else f"sluicegate_{field}"
    assert not samples(families, name)


def test_lost_settings_leave_the_gate_and_the_totals_but_no_figure_that_was_not_counted() -> None:
    """An age of 0 here would be a false all-clear: the jobs are still there, nobody looked."""
    lost = with_gate(replace(EMPTY, settings_digest=""), drain_state="drain", readable=False, pin="control_data_lost")

    shown = {sample.name for metric in queue_families([lost]) for sample in metric.samples}

    assert shown & set(STABLE_FIELDS) == {"drain_state", "canary_ok_count", "rollback_reason"}
    assert not shown & {"sluicegate_jobs", "sluicegate_doomed_jobs", "sluicegate_provider_window_calls"}
    assert {"sluicegate_gate_readable", "sluicegate_gate_pinned", "sluicegate_provider_calls_total"} <= shown


def test_a_queue_that_was_never_opened_is_empty_and_in_drain() -> None:
    unopened = with_gate(
        replace(EMPTY, settings_digest=""), drain_state="drain", readable=False, initialised=False, pin="uninitialised"
    )

    assert value(unopened, "queue_age_p95_seconds") == 0
    assert value(unopened, "sluicegate_gate_initialised") == 0
    assert values(unopened, "drain_state")["drain"] == 1
