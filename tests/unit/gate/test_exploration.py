"""Does the gate keep every rule of contract §6 and §7, in every state and on every event?"""

from __future__ import annotations

import pytest

from sluicegate.gate import GateState
from sluicegate.gate_events import Answer, Beside, Step, StepMove
from tests.gate_events import all_events, covering_rows
from tests.unit.gate.properties import PROPERTIES
from tests.unit.gate.view import Explored


def test_every_state_and_event_pair_is_defined(explored: Explored) -> None:
    """The exploration itself fails, with a trace, where the rule raises."""
    states = explored.exploration.states
    assert len(explored.seen) == len(states) * len(all_events())
    assert len(states) > 1000
    assert all(isinstance(seen.answer, Answer) for seen in explored.seen)
    assert all(isinstance(seen.row.after, GateState) for seen in explored.seen)


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_gate_keeps(name: str, explored: Explored) -> None:
    """On failure, the shortest trace that breaks the rule."""
    kept = PROPERTIES[name]
    for seen in explored.of(kept.kinds):
        if not kept.keeps(seen):
            pytest.fail(f"{name}: {kept.rule}\n{explored.exploration.told(seen.row)}", pytrace=False)


# A restore that is under way is no state of the gate's own: tests/contract/test_restore.py sees its answer.
ANSWERS = set(Answer) - {Answer.RESTORING}


def test_every_event_and_every_answer_occurs(explored: Explored) -> None:
    """An event that never moves anything, or an answer that nobody gets, would be a dead letter."""
    moving = {seen.event for seen in explored.seen if not seen.untouched}
    idle = {
        event for event in set(all_events()) - moving if not (isinstance(event, Step | Beside) and not event.fenced)
    }
    proofs = (StepMove.GREEN, StepMove.REOPEN, StepMove.RAMP_END)
    assert idle == {Step(move, proven=False) for move in proofs}
    assert {seen.answer for seen in explored.seen} == ANSWERS


def test_the_covering_rows_hold_every_event_and_every_answer(explored: Explored) -> None:
    """The rows chosen for the functions in Redis leave no event, no answer and no kind of change out."""
    rows = covering_rows(seen.row for seen in explored.seen)
    assert {row.event for row in rows} == set(all_events())
    assert {row.answer for row in rows} == ANSWERS
    assert len(rows) < 20_000
