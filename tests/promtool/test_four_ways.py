"""decide(), the rules, the panels and the runbooks' gates do the same in every state of a grid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.policy import Action
from sluicegate.settings import Settings, default_settings
from tests.four_ways import State, by_decide, by_gates, by_panels, by_rules, grid

# A prime, so that a sample goes through every value of every axis.
STRIDE = 61


def disagreements(settings: Settings, states: tuple[State, ...], folder: Path) -> list[tuple[str, State]]:
    decided = by_decide(settings, states)
    others = {
        "rules": by_rules(settings, states, folder),
        "panels": by_panels(settings, states),
        "gates": by_gates(settings, states),
    }
    return [
        (who, state)
        for who, answers in others.items()
        for state, mine, theirs in zip(states, decided, answers, strict=True)
        if not mine <= theirs
    ]


def test_a_sample_of_the_grid_is_one_action_four_ways(tmp_path: Path) -> None:
    settings = default_settings()
    states = grid(settings)[::STRIDE]

    assert disagreements(settings, states, tmp_path) == []
    assert {action for answer in by_decide(settings, states) for action in answer} == set(Action)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_grid_is_one_action_four_ways(tmp_path: Path) -> None:
    settings = default_settings()
    states = grid(settings)

    assert len(set(states)) >= 10_000
    assert disagreements(settings, states, tmp_path) == []


def test_whoever_goes_by_another_threshold_is_found(tmp_path: Path) -> None:
    settings = default_settings()
    bounds = replace(settings.contract.thresholds, reject_age_p95_seconds=19.0, recovered_slack_p10_seconds=14.0)
    other = settings.model_copy(update={"contract": settings.contract.model_copy(update={"thresholds": bounds})})
    states = tuple(state for state in grid(settings) if state.provider is None and state.duplicates is None)[::5]
    decided = by_decide(settings, states)

    for others in (by_rules(other, states, tmp_path), by_panels(other, states), by_gates(other, states)):
        assert [state for state, mine, theirs in zip(states, decided, others, strict=True) if not mine <= theirs]
