"""Conditions compare one known figure with one bound in that figure's unit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.conditions import FIGURES, Condition
from runbooks.context import Context
from runbooks.verdict import Verdict
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.settings import default_settings
from sluicegate.telemetry import Part
from tests.unit.runbooks.readings import calls, gate, reading

WHERE = Where("mine.yaml", "confirm.any[0]")
CONTEXT = Context(default_settings())


def verdict(text: str, **changes: object) -> Verdict:
    return Condition.read(text, WHERE).check(reading(**changes), CONTEXT).verdict


def test_a_figure_at_its_bound_is_judged_by_the_operator() -> None:
    assert verdict("queue_age_p95_seconds >= 25s", queue_age_p95_seconds=25.0) is Verdict.PASS
    assert verdict("queue_age_p95_seconds > 25s", queue_age_p95_seconds=25.0) is Verdict.FAIL
    assert verdict("deadline_slack_p10_seconds < 5s", deadline_slack_p10_seconds=-3.0) is Verdict.PASS
    assert verdict("worker_inflight == 4") is Verdict.PASS


def test_a_bound_may_name_a_setting() -> None:
    condition = Condition.read("queue_age_p95_seconds >= {{ contract.thresholds.drain_age_p95_seconds }}s", WHERE)
    assert condition.limit(CONTEXT) == 25
    assert condition.worded(CONTEXT) == "queue_age_p95_seconds >= 25s"


@pytest.mark.parametrize("value", [None, math.nan])
def test_no_sample_is_inconclusive(value: float | None) -> None:
    assert verdict("deadline_slack_p10_seconds < 5s", deadline_slack_p10_seconds=value) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("queue_age_p95_seconds < 15s", Part.CLOCK),
        ("oldest_job_age_seconds < 15s", Part.READY),
        ("deadline_slack_p10_seconds > 15s", Part.DEADLINES),
        ("provider_5xx_rate < 5%", Part.PROVIDER),
        ("provider_timeout_rate < 10%", Part.PROVIDER),
        ("worker_inflight == 4", Part.RUNNING),
        ("sluicegate_predicted_wait_seconds < 60s", Part.COMPLETIONS),
        ("sluicegate_doomed_jobs == 0", Part.DEADLINES),
        ("unknown_jobs == 0", Part.UNKNOWN),
        ("oldest_unknown_seconds < 1s", Part.UNKNOWN),
        ("unfinished_jobs >= 1", Part.READY),
        ("unfinished_jobs >= 1", Part.DELAYED),
        ("unfinished_jobs >= 1", Part.RUNNING),
        ("unfinished_jobs >= 1", Part.DEADLINES),
    ],
)
def test_what_somebody_wrote_over_is_inconclusive(text: str, part: Part) -> None:
    whole = {"provider": calls(40), "predicted_wait_seconds": 1.0, "doomed": 0}
    assert verdict(text, **whole) is Verdict.PASS
    assert verdict(text, **whole, damaged=frozenset({part})) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("part", [Part.READY, Part.DEADLINES, Part.CLOCK])
def test_no_unfinished_job_means_none_at_risk_only_where_they_were_counted(part: Part) -> None:
    none_left: dict[str, object] = {"deadline_slack_p10_seconds": None, "ready": 0, "running": 0}
    assert verdict("deadline_slack_p10_seconds > 15s", **none_left) is Verdict.PASS
    assert verdict("deadline_slack_p10_seconds < 15s", **none_left) is Verdict.FAIL
    damaged = none_left | {"damaged": frozenset({part})}
    assert verdict("deadline_slack_p10_seconds > 15s", **damaged) is Verdict.INCONCLUSIVE


def test_a_rate_of_few_calls_is_no_sample() -> None:
    assert verdict("provider_5xx_rate >= 5%", provider=calls(0)) is Verdict.INCONCLUSIVE
    assert verdict("provider_5xx_rate >= 5%", provider=calls(19, status_5xx=4)) is Verdict.INCONCLUSIVE
    assert verdict("provider_5xx_rate >= 5%", provider=calls(5, status_5xx=5)) is Verdict.PASS
    assert verdict("provider_timeout_rate >= 10%", provider=calls(20, timeouts=2)) is Verdict.PASS


def test_one_failed_call_confirms_no_drain() -> None:
    assert verdict("provider_5xx_rate >= 5%", provider=calls(20, status_5xx=1)) is Verdict.FAIL


def test_duplicates_behind_an_unreadable_gate_are_no_sample() -> None:
    condition = Condition.read("sluicegate_duplicate_side_effects_unacknowledged >= 1", WHERE)
    assert condition.check(gate(readable=False), CONTEXT).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("queue_age_p95_seconds >= 25", "not a duration"),
        ("queue_age_p95_seconds >= 25%", "not a duration"),
        ("provider_5xx_rate >= 5s", "not a share"),
        ("worker_inflight == 4s", "not a whole number"),
        ("queue_age_p95_seconds", "not a condition"),
        ("queue_age_p95_seconds != 5s", "not a condition"),
        ("5s <= queue_age_p95_seconds", "not a condition"),
        ("queue_age_p95 >= 5s", "not a figure"),
        ("drain_state == 1", "not a figure"),
        ("queue_age_p95_seconds >= 25s and worker_inflight == 4", "not a duration"),
        ("__import__('os') >= 1", "not a condition"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_field(text: str, match: str) -> None:
    with pytest.raises(SettingsError, match=match) as refused:
        Condition.read(text, WHERE)
    assert str(refused.value).startswith("mine.yaml: confirm.any[0] is ")


@given(st.sampled_from(sorted(FIGURES)), st.sampled_from([">=", "<=", ">", "<", "=="]), st.text(max_size=8))
def test_any_bound_is_a_number_or_refused(metric: str, op: str, bound: str) -> None:
    try:
        condition = Condition.read(f"{metric} {op} {bound}", WHERE)
    except SettingsError:
        return
    assert condition.limit(CONTEXT) >= 0
