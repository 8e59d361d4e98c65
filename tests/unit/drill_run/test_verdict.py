"""A verdict passes on evidence in which all is well, and each of its rows sees what it is there to see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from drill.child import ChildFailure
from drill.controls import FiringSpan
from drill.effects import Effect
from drill.expectations import alerts, gate, jobs, load, runs
from drill.rig import KILLED, RECONCILED, RESUMED, SUSPENDED
from drill.scenarios import SCENARIOS
from drill.timeline import Mark, PhaseRecord, Report
from drill.verdict import Expectation, Verdict, judge
from sluicegate.records import AlertName
from tests.readings import AT_MS
from tests.unit.drill_run.story import (
    RUN,
    effect,
    entry,
    history,
    job,
    journal,
    move,
    sample,
    story,
    submission,
    timeline,
)

MAIN_JOB = SCENARIOS["provider-degradation"]


def failed(verdict: Verdict) -> list[str]:
    return [row.name for row in verdict.rows if not row.ok]


def test_evidence_in_which_all_is_well_passes_every_expectation() -> None:
    verdict = judge(MAIN_JOB.expectations, story())
    assert failed(verdict) == []
    assert verdict.passed


def log_without(reason: str) -> dict[str, Any]:
    return {"gate_log": tuple(one for one in story().gate_log if one.reason != reason)}


SPOILT: list[tuple[str, dict[str, Any], set[str]]] = [
    (
        "a phase was missed",
        {"timeline": timeline(phases=[PhaseRecord("slow", "", AT_MS, AT_MS + 9000, "reject_new", seen="admit")])},
        {"phases"},
    ),
    ("a process died", {"died": (ChildFailure("worker-1", -9, ()),)}, {"processes"}),
    (
        "the gate never refused",
        log_without("admission_threshold"),
        {"the gate moves in order", "signal → admission closed"},
    ),
    (
        "the gate drained for another reason",
        {
            "gate_log": (
                *story().gate_log[:2],
                move(9.6, "reject_new", "drain", "operator_drain", epoch=3),
                *story().gate_log[3:],
            )
        },
        {"the gate moves in order"},
    ),
    (
        "the gate closed late",
        {
            "gate_log": (
                story().gate_log[0],
                move(9.8, "admit", "reject_new", "admission_threshold", epoch=2),
                *story().gate_log[2:],
            )
        },
        {"signal → admission closed"},
    ),
    (
        "a part was not scraped",
        {"targets": {"sluicegate": True, "sluicegate-automation": False}},
        {"parts are scraped"},
    ),
    ("no alert fired", {"firing": ()}, {"an alert fires", "alert → run", "page → first missed deadline"}),
    (
        "only an alert without a drain fired",
        {"firing": (FiringSpan(AlertName.QUEUE_AGE_HIGH, AT_MS, AT_MS),)},
        {"an alert fires", "alert → run", "page → first missed deadline"},
    ),
    (
        "the run came long after the alert",
        {"firing": (FiringSpan(AlertName.QUEUE_AGE_CRITICAL, AT_MS + 2000, AT_MS + 20_000),)},
        {"alert → run"},
    ),
    ("the timer opened the run", {"runs": (history(*journal(), trigger="timer"),)}, {"alert → run"}),
    ("there were two runs", {"runs": (*story().runs, *story().runs)}, {"there is one run"}),
    (
        "the run skipped its snapshot",
        {"runs": (history(*(one for one in journal() if one.verb != "snapshot")),)},
        {"the run goes through its steps"},
    ),
    (
        "the run's drain was never done",
        {"runs": (history(*(one for one in journal() if (one.verb, one.phase) != ("drain", "done"))),)},
        {"the run goes through its steps"},
    ),
    (
        "the run rolled back",
        {"runs": (history(*journal(), state="rolled_back", rollback_reason="canary_failed"),)},
        {"the run goes through its steps"},
    ),
    (
        "a worker said nothing",
        {"timeline": timeline(reports=story().timeline.reports[1:])},
        {"workers report their stop"},
    ),
    (
        "a report does not add up",
        {
            "timeline": timeline(
                reports=[
                    *story().timeline.reports,
                    Report("worker-1", "action=stop_pull lease_released=2 expired=0 requeued=1 unknown=0 finished=0"),
                ]
            )
        },
        {"workers report their stop"},
    ),
    (
        "a run's opening is not in its journal",
        {"runs": (history(*(one for one in journal() if one.phase != "opened")),)},
        {"every opening has its record"},
    ),
    (
        "the gate was seen open without a record",
        {"timeline": timeline(samples=[*story().timeline.samples[:-2], sample(25, "admit", epoch=77)])},
        {"every opening has its record"},
    ),
    (
        "the gate ended closed",
        {"timeline": timeline(latest=replace(story().timeline.latest, telemetry=sample(36, "drain")))},  # type: ignore[type-var]
        {"the gate ends"},
    ),
    (
        "the first page came a moment late",
        {"firing": (FiringSpan(AlertName.QUEUE_AGE_CRITICAL, AT_MS + 12_100, AT_MS + 20_000),)},
        {"page → first missed deadline"},
    ),
    ("a submission got no answer", {"load_errors": ("drill:1:9: refused",)}, {"every submission is answered"}),
    (
        "load ended with the run",
        {"submissions": story().submissions[:3]},
        {"load goes on after reopening"},
    ),
    (
        "a job was refused after reopening",
        {"submissions": (*story().submissions, submission(6, 35, "overloaded"))},
        {"load goes on after reopening"},
    ),
    ("a job has no end", {"jobs": (*story().jobs, job(6, "ready"))}, {"every job has an end"}),
    ("a job is gone", {"jobs": (*story().jobs, job(6, "gone"))}, {"every job has an end"}),
    ("an expired job has no record", {"failed_records": {}}, {"expired jobs are recorded"}),
    ("the provider did something twice", {"effects": (*story().effects, effect(1))}, {"nothing is done twice"}),
    (
        "a job succeeded without an effect",
        {"effects": (effect(1), effect(4))},
        {"succeeded means done"},
    ),
    ("a job is unknown", {"jobs": (*story().jobs, job(6, "unknown", "lease_expired"))}, {"no job is unknown"}),
    (
        "a job was unknown for a while",
        {"timeline": timeline(samples=[*story().timeline.samples, sample(40, "admit", epoch=5, unknown=1)])},
        {"no job is unknown"},
    ),
]


@pytest.mark.parametrize(("spoilt", "rows"), [case[1:] for case in SPOILT], ids=[case[0] for case in SPOILT])
def test_each_row_sees_what_it_is_there_to_see(spoilt: dict[str, Any], rows: set[str]) -> None:
    verdict = judge(MAIN_JOB.expectations, story(**spoilt))
    assert set(failed(verdict)) == rows
    assert not verdict.passed


def holds(expectation: Expectation, **spoilt: Any) -> bool:
    return expectation.look(story(**spoilt)).ok


def test_no_evidence_at_all_passes_nothing_that_was_to_happen() -> None:
    nothing: dict[str, Any] = {
        "gate_log": (),
        "runs": (),
        "submissions": (),
        "jobs": (),
        "effects": (),
        "firing": (),
        "targets": {},
    }
    rows = set(failed(judge(MAIN_JOB.expectations, story(**nothing))))
    assert rows >= {
        "the gate moves in order",
        "an alert fires",
        "there is one run",
        "every job has an end",
        "nothing is done twice",
    }


def test_jobs_kept_behind_a_gate_that_ends_closed_are_counted_not_lost() -> None:
    kept = (*story().jobs, job(6, "ready"), job(7, "delayed"))
    seen = jobs.every_job_has_an_end().look(story(jobs=kept, ends_closed=True))
    assert seen.ok
    assert "2 kept" in seen.text
    assert not holds(jobs.every_job_has_an_end(), jobs=(*kept, job(8, "running")), ends_closed=True)


def test_an_open_job_is_named_with_its_cause() -> None:
    seen = jobs.every_job_has_an_end().look(story(jobs=(job(1), job(3, "blocked", "retry_budget"))))
    assert seen.ok
    assert "j3 blocked (retry_budget)" in seen.text


@pytest.mark.parametrize(("found_at_s", "unknown", "ok"), [(16.5, 2, True), (16.8, 2, False), (16.0, 3, False)])
def test_lost_jobs_must_be_few_and_found_within_the_lease_and_half_a_second(
    found_at_s: float, unknown: int, ok: bool
) -> None:
    made = timeline(
        marks=[Mark(AT_MS + 10_000, KILLED, "kill -9")],
        samples=[*story().timeline.samples[:3], sample(found_at_s, unknown=unknown)],
    )
    assert holds(jobs.few_are_unknown_in_time(), timeline=made) is ok


def test_a_kill_that_lost_no_job_proves_nothing() -> None:
    made = timeline(marks=[Mark(AT_MS + 10_000, KILLED, "kill -9")])
    assert not holds(jobs.few_are_unknown_in_time(), timeline=made)


def test_unknown_jobs_must_be_settled_by_a_record() -> None:
    settled = timeline(marks=[Mark(AT_MS, RECONCILED, "j1: the provider's log has an effect")])
    assert holds(jobs.unknown_ones_were_settled(), timeline=settled)
    assert not holds(jobs.unknown_ones_were_settled())
    left = (*story().jobs, job(6, "unknown"))
    assert not holds(jobs.unknown_ones_were_settled(), timeline=settled, jobs=left)


def test_a_resumed_run_has_two_owners_and_repeats_no_step() -> None:
    taken_over = (*journal(), entry(17, "", "claimed"))
    assert holds(runs.is_resumed(), runs=(history(*taken_over),))
    assert not holds(runs.is_resumed())
    assert not holds(runs.is_resumed(), runs=(history(*taken_over, entry(18, "drain", "started")),))


@pytest.mark.parametrize(("opened_at_s", "ok"), [(15.5, False), (15.7, True), (17.0, True), (17.2, False)])
def test_the_timers_run_comes_when_no_alert_came(opened_at_s: float, ok: bool) -> None:
    run = history(*journal(), trigger="timer", started_at_ms=AT_MS + round(opened_at_s * 1000))
    assert holds(runs.opens_after_the_timer(), runs=(run,)) is ok


def test_canaries_must_have_failed_for_the_cause() -> None:
    slow = entry(20, "canary", "canary", "canary:1 failed: slow")
    assert holds(runs.canaries_failed_for("slow"), runs=(history(slow),))
    assert not holds(runs.canaries_failed_for("slow"), runs=(history(entry(20, "canary", "canary", "1 passed")),))


@pytest.mark.parametrize(
    ("refused_at_s", "accepted_at_s", "ok"), [(13.4, 20.1, True), (13.6, 20.1, False), (13.4, 12.0, False)]
)
def test_a_silent_controller_closes_admission_in_time_and_opens_it_again(
    refused_at_s: float, accepted_at_s: float, ok: bool
) -> None:
    marks = [Mark(AT_MS + 10_000, SUSPENDED, ""), Mark(AT_MS + 20_000, RESUMED, "")]
    answers = (submission(1, refused_at_s, "controller_silent"), submission(2, accepted_at_s))
    made = timeline(marks=marks)
    assert holds(load.silence_is_refused_in_time(), timeline=made, submissions=answers) is ok


def test_an_alert_that_may_not_fire_is_named() -> None:
    seen = alerts.none_fires_but(AlertName.WATCHDOG).look(story())
    assert not seen.ok
    assert AlertName.QUEUE_AGE_CRITICAL in seen.text


@pytest.mark.parametrize(
    ("opening", "ok"),
    [
        (move(5, "reject_new", "admit", "normal", epoch=5), True),
        (move(5, "drain", "admit", "normal", epoch=5), False),
        (move(5, "drain", "admit", "operator_open", epoch=5, actor="ada", note="looked at it"), True),
        (move(5, "drain", "admit", "operator_open", epoch=5, actor="", note=""), False),
        (move(5, "recovering", "admit", "run_reopen", epoch=5, run=RUN), True),
        (move(5, "recovering", "admit", "run_reopen", epoch=5, run="another"), False),
        (move(5, "drain", "admit", "somehow", epoch=5), False),
    ],
    ids=lambda value: f"{value.from_state}-{value.reason}-{value.run}" if not isinstance(value, bool) else None,
)
def test_an_opening_needs_hysteresis_a_run_or_a_named_person(opening: Any, ok: bool) -> None:
    assert holds(gate.every_opening_is_proven(), gate_log=(opening,), timeline=timeline(samples=[])) is ok


def test_an_effect_without_a_key_is_not_a_duplicate_of_another() -> None:
    unkeyed = tuple(Effect(0, None, number, None, False) for number in (8, 9))
    assert holds(jobs.nothing_is_done_twice(), effects=(*story().effects, *unkeyed))


def test_a_run_beside_the_lock_is_no_recovery() -> None:
    beside = history(entry(10, "reject", "done"), runbook="reject-and-prepare", state="failed")
    told = story(runs=(beside, *story().runs))
    assert told.recoveries == story().runs
    assert [row for row in judge(MAIN_JOB.expectations, told).rows if not row.ok] == []
