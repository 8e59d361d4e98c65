"""The figures beside the nine: split by state and class, born at 0, and never a label out of free text."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from exporter.catalogue.flow import RUN_RESULTS
from exporter.catalogue.gate import DECISION_ROWS
from exporter.families import queue_families
from sluicegate.admission import RefusalReason
from sluicegate.gate import DrainState, PinReason
from sluicegate.job import CallKind
from sluicegate.policy import Figures, Thresholds, decide
from sluicegate.run_steps import StepResult, VerbName
from sluicegate.telemetry import Part, ProviderWindow
from tests.readings import AT_MS, EMPTY, live, with_gate
from tests.unit.exporter.telemetries import BUSY, LINT_FIX, RECOVERY, value, values


def test_jobs_are_split_by_state_and_never_summed() -> None:
    assert values(BUSY, "sluicegate_jobs") == {"pending": 4, "delayed": 2, "running": 3, "unknown": 1, "blocked": 0}


def test_the_oldest_unknown_has_a_time_and_none_is_none() -> None:
    assert value(BUSY, "sluicegate_oldest_unknown_timestamp_seconds") == AT_MS / 1000 - 7
    assert value(EMPTY, "sluicegate_oldest_unknown_timestamp_seconds") is None


def test_classes_have_figures_under_names_of_their_own() -> None:
    assert values(BUSY, "sluicegate_class_jobs") == {
        ("lint-fix", "pending"): 4,
        ("lint-fix", "delayed"): 2,
        ("lint-fix", "running"): 3,
        ("lint-fix", "unknown"): 1,
        ("lint-fix", "blocked"): 0,
    }
    assert values(BUSY, "sluicegate_class_queue_age_p95_seconds") == {"lint-fix": 12.5}
    assert values(BUSY, "sluicegate_class_deadline_slack_p10_seconds") == {"lint-fix": -1.5}
    assert values(BUSY, "sluicegate_class_deadline_seconds") == {"lint-fix": 60}


def test_an_idle_class_has_no_slack_but_its_counters_at_zero() -> None:
    idle = replace(LINT_FIX, deadline_slack_p10_seconds=None, younger=())
    telemetry = replace(EMPTY, classes={"lint-fix": idle})

    assert values(telemetry, "sluicegate_class_deadline_slack_p10_seconds") == {}
    assert values(telemetry, "sluicegate_class_deadline_outcomes_total") == {
        ("lint-fix", "met"): 0,
        ("lint-fix", "missed"): 0,
        ("lint-fix", "expired"): 0,
    }
    assert values(telemetry, "sluicegate_class_admitted_total") == {"lint-fix": 0}


def test_deadline_outcomes_are_counted_by_class() -> None:
    assert values(BUSY, "sluicegate_class_deadline_outcomes_total") == {
        ("lint-fix", "met"): 40,
        ("lint-fix", "missed"): 1,
        ("lint-fix", "expired"): 3,
    }
    assert values(BUSY, "sluicegate_class_ended_total")["lint-fix", "succeeded"] == 41


def test_every_outcome_of_a_call_is_a_counter_from_the_start() -> None:
    assert values(EMPTY, "sluicegate_provider_calls_total") == {kind.value: 0 for kind in CallKind}
    assert values(BUSY, "sluicegate_provider_calls_total")["5xx"] == 4


def test_the_window_behind_the_rates_is_shown() -> None:
    assert value(BUSY, "sluicegate_provider_window_seconds") == 30
    assert value(BUSY, "sluicegate_provider_window_calls") == 60
    assert value(BUSY, "sluicegate_provider_window_failed_calls") == 6
    assert value(EMPTY, "sluicegate_provider_window_calls") == 0


def test_admissions_are_born_at_zero_for_every_known_reason() -> None:
    shown = values(EMPTY, "sluicegate_admissions_total")

    assert set(shown) == {
        ("accepted", "none"),
        ("replayed", "none"),
        *(("refused", reason.value) for reason in RefusalReason),
    }
    assert set(shown.values()) == {0}


def test_admissions_count_by_outcome_and_reason() -> None:
    shown = values(BUSY, "sluicegate_admissions_total")

    assert shown["accepted", "none"] == 100
    assert shown["replayed", "none"] == 5
    assert shown["refused", "overloaded"] == 7
    assert shown["refused", "lint-fix_limit"] == 2


def test_a_reason_nobody_declared_is_folded_into_other() -> None:
    junk = {f"refused:{'x' * n} y": 1 for n in range(500)}
    counters = {**junk, "refused:browser_limit": 3, "refused:gone_limit": 7}
    telemetry = replace(EMPTY, counters=counters, cost_classes=("browser",))

    shown = values(telemetry, "sluicegate_admissions_total")

    assert shown["refused", "other"] == 500
    assert shown["refused", "browser_limit"] == 3
    assert ("refused", "gone_limit") not in shown, "what is declared no more is gone"
    assert len(shown) == len(RefusalReason) + 4


def test_runs_are_counted_by_result_from_zero_and_a_garbled_result_is_other() -> None:
    telemetry = replace(BUSY, counters={"runs:succeeded": 2, "runs:rolled_back": 1, "runs:Ümlaut!": 1, "runs:x": 2})

    none_yet = dict.fromkeys(RUN_RESULTS, 0)
    assert values(EMPTY, "sluicegate_runs_total") == none_yet
    assert values(telemetry, "sluicegate_runs_total") == {**none_yet, "succeeded": 2, "rolled_back": 1, "other": 3}


def test_runs_and_their_steps_are_counted_with_the_time_they_took() -> None:
    counters = {"run_ms:succeeded": 90_500, "steps:fix:done": 2, "steps:canary:rolled_back": 1, "step_ms:fix": 61_000}
    telemetry = replace(BUSY, counters=counters)

    assert values(telemetry, "sluicegate_run_seconds_total")["succeeded"] == 90.5
    steps = values(telemetry, "sluicegate_steps_total")
    assert {ended for ended, count in steps.items() if count} == {("fix", "done"), ("canary", "rolled_back")}
    assert len(steps) == len(VerbName) * len(StepResult)
    assert values(telemetry, "sluicegate_step_seconds_total")["fix"] == 61
    assert set(values(EMPTY, "sluicegate_step_seconds_total").values()) == {0}


def test_a_step_that_no_runbook_has_is_no_label() -> None:
    strange = live("drain-and-recover", step="free text, of any length")

    assert values(with_gate(BUSY, run=strange), "sluicegate_run_live") == {("drain-and-recover", "none"): 1}


def test_refusals_are_born_at_zero_for_every_class_and_reason() -> None:
    counted = {"lint-fix": {"refused:overloaded": 2, "refused:lint-fix_limit": 1, "refused:browser_limit": 4}}
    shown = values(replace(BUSY, class_counters=counted), "sluicegate_class_refusals_total")

    assert {reason: count for (_, reason), count in shown.items() if count} == {
        "overloaded": 2,
        "lint-fix_limit": 1,
        "browser_limit": 4,
    }
    assert {reason for _, reason in shown} >= set(RefusalReason)


def test_ages_are_a_histogram_whose_bounds_are_the_thresholds() -> None:
    shown = values(BUSY, "sluicegate_class_queue_age_seconds_bucket")

    assert {bound: count for (_, bound), count in shown.items()} == {
        "5.0": 1,
        "10.0": 2,
        "15.0": 4,
        "20.0": 4,
        "25.0": 4,
        "50.0": 4,
        "+Inf": 4,
    }


@pytest.mark.parametrize("part", Part)
def test_a_damaged_part_costs_its_figures_and_no_other(part: Part) -> None:
    damaged = replace(BUSY, damaged=frozenset({part}))
    whole = {sample.name for family in queue_families([BUSY]) for sample in family.samples}

    shown = {sample.name for family in queue_families([damaged]) for sample in family.samples}

    lost = {
        Part.CLOCK: {"queue_age_p95_seconds", "oldest_job_age_seconds", "deadline_slack_p10_seconds"},
        Part.READY: {"queue_age_p95_seconds", "sluicegate_class_queue_age_seconds_bucket"},
        Part.DEADLINES: {"deadline_slack_p10_seconds", "sluicegate_doomed_jobs"},
        Part.RUNNING: {"worker_inflight", "sluicegate_class_inflight"},
        Part.PROVIDER: {"provider_5xx_rate", "provider_timeout_rate", "sluicegate_provider_window_calls"},
        Part.COMPLETIONS: {"sluicegate_window_completions", "sluicegate_predicted_wait_seconds"},
        Part.COUNTERS: {"sluicegate_admissions_total", "sluicegate_class_ended_total", "sluicegate_runs_total"},
    }.get(part, set())
    assert lost <= whole - shown
    assert {"drain_state", "sluicegate_snapshot_timestamp_seconds"} <= shown


@pytest.mark.parametrize("state", ["delayed", "unknown", "blocked"])
def test_a_state_whose_container_is_damaged_is_not_counted(state: str) -> None:
    shown = values(replace(BUSY, damaged=frozenset({Part(state)})), "sluicegate_jobs")

    assert state not in shown
    assert shown["pending"] == 4


def test_a_total_that_somebody_wrote_over_has_no_sample_and_the_others_keep_theirs() -> None:
    broken = frozenset({("", "calls:5xx"), ("lint-fix", "met")})
    telemetry = replace(BUSY, broken_counters=broken)

    assert "5xx" not in values(telemetry, "sluicegate_provider_calls_total")
    assert values(telemetry, "sluicegate_provider_calls_total")["ok"] == 54
    outcomes = values(telemetry, "sluicegate_class_deadline_outcomes_total")
    assert outcomes == {("lint-fix", "missed"): 1, ("lint-fix", "expired"): 3}


def test_a_run_that_was_refused_is_no_run_that_ended() -> None:
    telemetry = replace(BUSY, counters={"runs_refused:cooldown": 4})

    assert values(telemetry, "sluicegate_runs_refused_total")["cooldown"] == 4
    assert set(values(telemetry, "sluicegate_runs_total").values()) == {0}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sluicegate_doomed_jobs", 2),
        ("sluicegate_queue_age_p50_seconds", 6),
        ("sluicegate_queue_age_p99_seconds", 14),
        ("sluicegate_deadline_slack_p1_seconds", -3),
        ("sluicegate_deadline_slack_p50_seconds", 20),
        ("sluicegate_queue_age_p95_ready_timestamp_seconds", AT_MS / 1000 - 12.5),
        ("sluicegate_future_ready_jobs", 0),
        ("sluicegate_gate_since_timestamp_seconds", AT_MS / 1000 - 60),
        ("sluicegate_predicted_wait_seconds", 2.25),
        ("sluicegate_window_completions", 54),
        ("sluicegate_oldest_job_ready_timestamp_seconds", AT_MS / 1000 - 14.25),
        ("sluicegate_snapshot_timestamp_seconds", AT_MS / 1000),
        ("sluicegate_last_snapshot_timestamp_seconds", AT_MS / 1000 - 90),
        ("sluicegate_controller_seen_timestamp_seconds", AT_MS / 1000 - 0.4),
        ("sluicegate_admission_ratio", 1),
        ("sluicegate_gate_initialised", 1),
        ("sluicegate_gate_readable", 1),
        ("sluicegate_canaries_required", 3),
        ("sluicegate_canary_jobs", 1),
        ("sluicegate_lease_expiries_total", 1),
        ("sluicegate_requeues_total", 6),
        ("sluicegate_stale_writes_total", 0),
    ],
)
def test_a_single_figure_shows_its_value(name: str, expected: float) -> None:
    assert value(BUSY, name) == pytest.approx(expected)


@pytest.mark.parametrize(
    "name",
    ["predicted_wait_seconds", "oldest_job_ready_timestamp_seconds", "queue_age_p95_ready_timestamp_seconds"],
)
def test_what_nobody_can_know_has_no_sample(name: str) -> None:
    assert value(EMPTY, f"sluicegate_{name}") is None


@pytest.mark.parametrize("pin", [None, *PinReason])
def test_every_pin_reason_is_shown_and_only_the_one_in_force_is_one(pin: PinReason | None) -> None:
    shown = values(with_gate(BUSY, pin=pin), "sluicegate_gate_pinned")

    assert shown == {reason.value: float(reason is pin) for reason in PinReason}


def test_a_pin_nobody_knows_still_reads_as_pinned() -> None:
    shown = values(with_gate(BUSY, pin="because"), "sluicegate_gate_pinned")

    assert [reason for reason, at in shown.items() if at] == ["control_data_lost"]


def test_the_live_run_is_shown_with_its_step_and_gone_when_it_is() -> None:
    assert values(with_gate(BUSY, run=RECOVERY), "sluicegate_run_live") == {("drain-and-recover", "canary"): 1}
    assert values(BUSY, "sluicegate_run_live") == {}


def test_thresholds_in_force_are_shown_by_name() -> None:
    junk = replace(BUSY, thresholds={**BUSY.thresholds, "somebody's own": 1.0})

    assert values(junk, "sluicegate_threshold") == {"reject_age_p95_seconds": 20, "drain_provider_5xx_rate": 0.05}


def test_the_last_decision_is_one_row_and_before_the_first_tick_none() -> None:
    drain = with_gate(BUSY, decision="drain", decision_reason="provider_or_queue_age")

    shown = values(drain, "sluicegate_decision")
    assert [row for row, at in shown.items() if at] == [("drain", "provider_or_queue_age")]
    assert len(shown) == len(DECISION_ROWS)
    assert set(values(with_gate(BUSY, decision="", decision_reason=""), "sluicegate_decision").values()) == {0}


def test_every_decision_that_can_be_made_has_its_row() -> None:
    windows = [ProviderWindow(30, 40, failed, 0) for failed in (0, 20)]
    seen = {
        decide(
            Figures(
                age_p95_seconds=age,
                slack_p10_seconds=slack,
                provider=window,
                drain_state=state,
                canary_ok_count=3 if green else 0,
                canaries_required=3,
                green=green,
                duplicates_unacknowledged=duplicates,
                run_live=run_live,
                rollback_reason=reason,
                pinned=pinned,
            ),
            Thresholds(),
        )
        for age, slack, window, state, green, duplicates, run_live, reason, pinned in product(
            (0.0, 16.0, 21.0, 30.0),
            (None, 3.0, 10.0, 60.0),
            windows,
            DrainState,
            (False, True),
            (0, 1),
            (False, True),
            (None, "canary_failed"),
            (False, True),
        )
    }

    assert {(decision.action, decision.reason) for decision in seen} == set(DECISION_ROWS)
