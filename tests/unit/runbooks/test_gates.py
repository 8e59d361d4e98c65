"""Gates pass, fail or say that they cannot tell; no data is never a pass."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from runbooks.gates import (
    CheckResult,
    Measurement,
    Verdict,
    burn_down_forecast,
    burn_down_gate,
    canary_gate,
    overall,
    reopen_gate,
)
from sluicegate.policy import provider_breached
from sluicegate.settings import Contract, default_settings
from sluicegate.telemetry import Part, ProviderWindow, Telemetry
from tests.unit.runbooks.readings import HEALTHY, calls, gate, reading

CONTRACT = default_settings().contract


def green(**changes: object) -> Telemetry:
    return replace(gate(drain_state="recovering", green=True, canary_ok_count=3), **changes)  # type: ignore[arg-type]


def without_canaries() -> Contract:
    classes = {name: declared.model_copy(update={"canary": None}) for name, declared in CONTRACT.classes.items()}
    return CONTRACT.model_copy(update={"classes": classes})


def names(checks: tuple[CheckResult, ...], verdict: Verdict) -> set[str]:
    return {check.name for check in checks if check.verdict is verdict}


def test_reopening_needs_all_six_checks() -> None:
    assert overall(reopen_gate(green(), CONTRACT)) is Verdict.PASS
    assert len(reopen_gate(green(), CONTRACT)) == 6


@pytest.mark.parametrize(
    ("telemetry", "failed"),
    [
        (gate(drain_state="recovering"), "green"),
        (green(deadline_slack_p10_seconds=15.0), "deadline_slack_p10_seconds"),
        (green(queue_age_p95_seconds=15.0), "queue_age_p95_seconds"),
        (green(provider=calls(40, status_5xx=2)), "provider_5xx_rate"),
        (green(provider=calls(20, timeouts=2)), "provider_timeout_rate"),
        (green(provider=calls(5, status_5xx=5)), "provider_5xx_rate"),
        (
            replace(HEALTHY, gate=replace(green().gate, duplicates_unacknowledged=1)),
            "sluicegate_duplicate_side_effects_unacknowledged",
        ),
    ],
)
def test_each_check_alone_keeps_the_gate_closed(telemetry: Telemetry, failed: str) -> None:
    checks = reopen_gate(telemetry, CONTRACT)
    assert overall(checks) is Verdict.FAIL
    assert names(checks, Verdict.FAIL) == {failed}


@pytest.mark.parametrize("window", [calls(0), calls(4, status_5xx=4), calls(20, status_5xx=1), calls(41, status_5xx=2)])
def test_rates_under_their_bounds_or_of_too_few_calls_let_the_gate_open(window: ProviderWindow) -> None:
    telemetry = green(provider=window)
    assert not provider_breached(window, CONTRACT.thresholds)
    assert overall(reopen_gate(telemetry, CONTRACT)) is Verdict.PASS


def test_no_unfinished_job_means_none_at_risk() -> None:
    empty = green(deadline_slack_p10_seconds=None, ready=0, delayed=0, running=0)
    assert overall(reopen_gate(empty, CONTRACT)) is Verdict.PASS


@pytest.mark.parametrize(
    "telemetry",
    [
        green(deadline_slack_p10_seconds=None),
        green(deadline_slack_p10_seconds=math.nan),
        green(queue_age_p95_seconds=math.nan),
        gate(green=True, readable=False),
        gate(green=True, initialised=False),
    ],
)
def test_reopening_without_data_is_inconclusive(telemetry: Telemetry) -> None:
    assert overall(reopen_gate(telemetry, CONTRACT)) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("part", [Part.PROVIDER, Part.READY, Part.CLOCK, Part.DEADLINES])
def test_what_somebody_wrote_over_opens_nothing(part: Part) -> None:
    assert overall(reopen_gate(green(damaged=frozenset({part})), CONTRACT)) is Verdict.INCONCLUSIVE


def test_a_queue_whose_settings_are_lost_opens_nothing() -> None:
    assert overall(reopen_gate(green(settings_digest=""), CONTRACT)) is Verdict.INCONCLUSIVE


def test_no_check_at_all_is_no_pass() -> None:
    assert overall(()) is Verdict.INCONCLUSIVE


def test_canaries_pass_at_the_required_number_in_a_row() -> None:
    assert overall(canary_gate(gate(canary_ok_count=2), CONTRACT, 10)) is Verdict.INCONCLUSIVE
    assert overall(canary_gate(gate(canary_ok_count=3), CONTRACT, 10)) is Verdict.PASS


def test_canaries_fail_on_the_third_failure_or_out_of_time() -> None:
    assert overall(canary_gate(gate(canary_failures=2), CONTRACT, 10)) is Verdict.INCONCLUSIVE
    assert overall(canary_gate(gate(canary_failures=3), CONTRACT, 10)) is Verdict.FAIL
    assert overall(canary_gate(gate(), CONTRACT, 119.9)) is Verdict.INCONCLUSIVE
    assert overall(canary_gate(gate(), CONTRACT, 120)) is Verdict.FAIL


def test_green_in_time_stays_green() -> None:
    assert overall(canary_gate(gate(green=True, canary_failures=2), CONTRACT, 500)) is Verdict.PASS


def test_without_canary_classes_only_a_person_makes_green() -> None:
    assert overall(canary_gate(gate(canary_ok_count=9), without_canaries(), 10)) is Verdict.INCONCLUSIVE
    assert overall(canary_gate(gate(), without_canaries(), 120)) is Verdict.INCONCLUSIVE  # people take longer
    assert overall(canary_gate(gate(), without_canaries(), 3600)) is Verdict.FAIL
    assert overall(canary_gate(gate(green=True), without_canaries(), 10)) is Verdict.PASS


def test_canaries_behind_an_unreadable_gate_are_inconclusive() -> None:
    assert overall(canary_gate(gate(readable=False, canary_ok_count=3), CONTRACT)) is Verdict.INCONCLUSIVE


def looks(*rows: tuple[float, float, int]) -> list[Measurement]:
    return [Measurement(round(at_s * 1000), age, backlog) for at_s, age, backlog in rows]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], Verdict.INCONCLUSIVE, id="nothing measured"),
        pytest.param([(0, 40, 100)], Verdict.INCONCLUSIVE, id="just green"),
        pytest.param([(0, 14.9, 100)], Verdict.PASS, id="young enough at green"),
        pytest.param([(0, 40, 0)], Verdict.PASS, id="nothing kept"),
        pytest.param([(0, 40, 100), (29, 41, 100)], Verdict.INCONCLUSIVE, id="first window not over"),
        pytest.param([(0, 40, 100), (30, 39, 100)], Verdict.INCONCLUSIVE, id="age falls by 1 s"),
        pytest.param([(0, 40, 100), (30, 39.1, 100)], Verdict.FAIL, id="age falls by less"),
        pytest.param([(0, 40, 100), (30, 60, 90)], Verdict.INCONCLUSIVE, id="backlog falls by 10 %"),
        pytest.param([(0, 40, 100), (30, 60, 91)], Verdict.FAIL, id="backlog falls by less"),
        pytest.param([(0, 40, 100), (30, 30, 50), (60, 30, 50)], Verdict.FAIL, id="second window stands still"),
        pytest.param([(0, 40, 100), (30, 60, 50), (60, 80, 40)], Verdict.INCONCLUSIVE, id="10 % of the size at green"),
        pytest.param([(0, 40, 100), (30, 60, 50), (60, 80, 41)], Verdict.FAIL, id="10 % of what is left is too little"),
        pytest.param([(0, 40, 100), (61, 20, 50)], Verdict.INCONCLUSIVE, id="windows without a look"),
        pytest.param([(0, 40, 100), (30, 30, 80), (60, 20, 60), (70, 14, 50)], Verdict.PASS, id="done"),
        pytest.param(
            [(0, 99, 100), (30, 90, 90), (60, 80, 80), (90, 70, 70), (120, 60, 60), (120.5, 60, 60)],
            Verdict.FAIL,
            id="out of time",
        ),
    ],
)
def test_the_burn_down_is_judged_window_by_window(rows: list[tuple[float, float, int]], expected: Verdict) -> None:
    assert overall(burn_down_gate(looks(*rows), CONTRACT)) is expected


def test_silence_runs_out_of_time_too() -> None:
    checks = burn_down_gate(looks((0, 40, 100)), CONTRACT, now_ms=121_000)
    assert "elapsed_seconds" in names(checks, Verdict.FAIL)


def test_the_forecast_sets_backlog_over_capacity_against_the_limit() -> None:
    assert burn_down_forecast(reading(ready=716), CONTRACT).verdict is Verdict.PASS
    too_much = burn_down_forecast(reading(ready=717), CONTRACT)
    assert too_much.verdict is Verdict.FAIL
    assert too_much.value == pytest.approx(721 / 6)
