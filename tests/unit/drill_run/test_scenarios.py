"""The table of scenarios, and the conditions that their phases wait for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import drill.scenarios
from drill import defaults
from drill.scenarios import SCENARIOS, conditions
from drill.scenarios.scenario import Condition, Scenario, View
from drill.timeline import Look
from sluicegate.admission import Decision
from sluicegate.replies import WorkerView
from tests.readings import AT_MS, with_gate
from tests.unit.drill_run.story import entry, history, move, sample, submission

SHARED = {"__init__", "scenario", "conditions", "faults", "matrix"}


def test_there_is_one_file_a_scenario_and_both_bear_the_same_name() -> None:
    folder = Path(drill.scenarios.__file__).parent
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py") if path.stem not in SHARED}
    assert files == set(SCENARIOS)
    assert defaults.SCENARIO in SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_phases_and_expectations_have_names_of_their_own(scenario: Scenario) -> None:
    assert all(phase.within_s > 0 and phase.text and phase.until.name for phase in scenario.phases)
    for names in (
        [phase.name for phase in scenario.phases],
        [expectation.name for expectation in scenario.expectations],
    ):
        assert len(set(names)) == len(names)


def view(at_s: float = 10, phase_from_s: float = 5, **fields: Any) -> View:
    known: dict[str, Any] = {"gate_log": (), "runs": (), "workers": (), "firing": (), **fields}
    submissions = known.pop("submissions", ())
    telemetry = known.pop("telemetry", sample(at_s))
    look = Look(telemetry=telemetry, **known)
    return View(look, AT_MS + round(phase_from_s * 1000), at_s - phase_from_s, submissions)


ACCEPTED = tuple(submission(number, 5 + number) for number in range(1, 6))
RUN = history(entry(6, "snapshot", "done"), state="rolled_back")

ALIVE = WorkerView("worker-2", 150, 1, 2, "")
LOOKED_AT = with_gate(sample(10), controller_seen_ms=AT_MS + 9000)
WAITS = replace(submission(6, 9, "r"), decision=Decision(False, "j6", "r", 6.0))

CASES: list[tuple[str, Condition, View, bool]] = [
    ("healthy", conditions.healthy_for(5), view(submissions=ACCEPTED), True),
    ("nobody submits", conditions.healthy_for(5), view(), False),
    ("gate closed", conditions.healthy_for(5), view(submissions=ACCEPTED, telemetry=sample(10, "drain")), False),
    ("no move", conditions.gate_reaches("drain", "x"), view(), False),
    (
        "another reason",
        conditions.gate_reaches("drain", "x"),
        view(gate_log=(move(6, "admit", "drain", "y", epoch=1),)),
        False,
    ),
    ("moved", conditions.gate_reaches("drain", "x"), view(gate_log=(move(6, "admit", "drain", "x", epoch=1),)), True),
    ("no run", conditions.run_opened(), view(), False),
    ("run", conditions.run_opened(), view(runs=(RUN,)), True),
    ("step not reached", conditions.step_reached("drain", "done"), view(runs=(RUN,)), False),
    ("step reached", conditions.step_reached("snapshot", "done"), view(runs=(RUN,)), True),
    ("another end", conditions.run_ends("succeeded"), view(runs=(RUN,)), False),
    ("the end", conditions.run_ends("rolled_back"), view(runs=(RUN,)), True),
    ("not green", conditions.turned_green(), view(), False),
    (
        "green",
        conditions.turned_green(),
        view(gate_log=(move(6, "recovering", "recovering", "canaries_green", epoch=1),)),
        True,
    ),
    ("none refused", conditions.refused("r"), view(submissions=ACCEPTED), False),
    ("refused before the phase", conditions.refused("r"), view(submissions=(submission(1, 4, "r"),)), False),
    ("refused", conditions.refused("r"), view(submissions=(*ACCEPTED, submission(6, 9, "r"))), True),
    ("refused too briefly", conditions.refused_for("r", 6), view(submissions=(submission(6, 9, "r"),)), False),
    ("refused long enough", conditions.refused_for("r", 2), view(submissions=(submission(6, 9, "r"),)), True),
    ("accepted", conditions.accepted_for(3), view(submissions=ACCEPTED), True),
    ("accepted but once", conditions.accepted_for(3), view(submissions=(*ACCEPTED, submission(6, 9, "r"))), False),
    ("refused earlier", conditions.accepted_for(3), view(submissions=(submission(6, 6, "r"), *ACCEPTED)), True),
    ("known", conditions.lost_jobs_found(), view(), False),
    ("unknown", conditions.lost_jobs_found(), view(telemetry=sample(10, unknown=1)), True),
    (
        "one still under its lease",
        conditions.lost_jobs_found(),
        view(telemetry=sample(10, unknown=1), workers=(WorkerView("worker-1", 5000, 1, 1, ""),)),
        False,
    ),
    (
        "only the living hold jobs",
        conditions.lost_jobs_found(),
        view(telemetry=sample(10, unknown=1), workers=(WorkerView("worker-1", 5000, 1, 0, ""), ALIVE)),
        True,
    ),
    ("nobody looked yet", conditions.ready(1), view(workers=(ALIVE,)), False),
    ("ready", conditions.ready(1), view(workers=(ALIVE,), telemetry=LOOKED_AT), True),
    ("a worker is missing", conditions.ready(2), view(workers=(ALIVE,), telemetry=LOOKED_AT), False),
    ("one more to come", conditions.answered(6), view(submissions=ACCEPTED), False),
    ("all accepted", conditions.answered(5), view(submissions=ACCEPTED), True),
    ("others refused", conditions.answered(1, "r"), view(submissions=(*ACCEPTED, submission(6, 9, "r"))), True),
    ("not due", conditions.refusals_due(), view(submissions=(WAITS,)), False),
    ("due", conditions.refusals_due(), view(16, submissions=(WAITS,)), True),
    ("accepted since", conditions.refusals_due(), view(submissions=(WAITS, submission(6, 9.5))), True),
    ("one runs", conditions.pending(1), view(telemetry=sample(10, ready=1, running=1)), False),
    ("all wait", conditions.pending(1), view(telemetry=sample(10, ready=1)), True),
    ("too short", conditions.lasts(6), view(), False),
    ("long enough", conditions.lasts(5), view(), True),
    ("one unknown", conditions.none_unknown(), view(telemetry=sample(10, unknown=1)), False),
    ("none unknown", conditions.none_unknown(), view(), True),
    ("one delayed", conditions.all_done(), view(telemetry=sample(10, delayed=1)), False),
    ("all done", conditions.all_done(), view(), True),
    ("not back", conditions.back_for("worker-2", 5), view(workers=(replace(ALIVE, seen_ms_ago=5000),)), False),
    ("back", conditions.back_for("worker-2", 5), view(workers=(ALIVE,)), True),
    ("another is back", conditions.back_for("worker-1", 5), view(workers=(ALIVE,)), False),
]


@pytest.mark.parametrize(("condition", "seen", "holds"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_condition_holds_when_what_it_waits_for_is_seen(condition: Condition, seen: View, holds: bool) -> None:
    assert condition.holds(seen) is holds
    assert condition.name
    assert condition.seen(seen)


def test_what_is_seen_of_a_missed_condition_helps_to_find_out_why() -> None:
    stuck = view(
        runs=(history(entry(6, "fix", "started", "waits"), state="running"),),
        telemetry=replace(sample(10, "drain"), queue_age_p95_seconds=31.2),
    )
    text = conditions.run_ends("succeeded").seen(stuck)
    assert "is running, last entry fix started waits" in text
    assert "state=drain" in text
    assert "queue_age_p95_seconds=31.2" in text
