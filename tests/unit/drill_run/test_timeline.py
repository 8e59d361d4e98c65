"""The record of a drill: samples at a pace, nothing important between them missed, each report once."""

from __future__ import annotations

from drill.timeline import Look, Timeline
from sluicegate.policy import Thresholds
from sluicegate.replies import WorkerView
from sluicegate.telemetry import Telemetry
from tests.unit.drill_run.story import sample


def recorded(*figures: Telemetry, workers: tuple[WorkerView, ...] = ()) -> Timeline:
    timeline = Timeline(500, Thresholds())
    for telemetry in figures:
        timeline.add(Look(telemetry, (), (), workers, ()))
    return timeline


def test_looks_become_samples_at_the_pace_asked_for() -> None:
    timeline = recorded(*(sample(tenth / 10) for tenth in range(21)))
    assert len(timeline.samples) == 5
    assert timeline.latest is not None
    assert timeline.latest.telemetry == sample(2.0)


def test_a_moved_gate_and_an_unknown_job_are_sampled_at_once() -> None:
    looks = (sample(0), sample(0.1, "drain"), sample(0.2, "drain", unknown=1), sample(0.3, "drain", unknown=1))
    assert recorded(*looks).samples == list(looks[:3])


def test_the_same_report_counts_once_and_a_new_one_again() -> None:
    first, second = (WorkerView("worker-1", 100, 1, 0, f"action=stop_pull lease_released={n}") for n in (1, 2))
    timeline = recorded(sample(0), sample(1), workers=(first,))
    timeline.add(Look(sample(2), (), (), (second, WorkerView("worker-2", 100, 1, 0, "")), ()))
    assert [report.text[-1] for report in timeline.reports] == ["1", "2"]


def test_the_first_mark_of_a_kind_counts() -> None:
    timeline = recorded()
    timeline.mark(5, "killed", "one")
    timeline.mark(9, "killed", "two")
    assert timeline.marked("killed") == 5
    assert timeline.marked("resumed") is None
