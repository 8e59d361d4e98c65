"""Does leaving out any one rule bring a violation back? The proof that the exploration's tests can fail.

Each mutation takes one rule out of the real `transition`; the named property must then break, with a trace.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate import transition as rules
from sluicegate.gate import RawEdit, effective
from tests.gate_events import Exploration, Rule
from tests.unit.gate import view
from tests.unit.gate.left_out import LEFT_OUT, STUCK_WITHOUT, LeftOut
from tests.unit.gate.properties import PROPERTIES
from tests.unit.gate.test_liveness import attended, stuck
from tests.unit.gate.view import Explored, Viewer


@pytest.mark.parametrize("left_out", LEFT_OUT, ids=lambda left_out: left_out.rule)
def test_without_the_rule_that(left_out: LeftOut, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exploration finds a state and an event that break the named property."""
    for name, mutant in left_out.patches:
        monkeypatch.setattr(rules, name, mutant)
    prop, viewer = PROPERTIES[left_out.missed_by], Viewer()
    exploration = Exploration(rule=left_out.wrapped)
    seen = (viewer.see(row) for row in exploration.walk())
    broken = next((each for each in seen if prop.speaks_of(each) and not prop.keeps(each)), None)
    assert broken is not None, f"nothing missed the rule that {left_out.rule}"
    assert exploration.told(broken.row).startswith("uninitialised")


@pytest.mark.parametrize("mutant", STUCK_WITHOUT.values(), ids=list(STUCK_WITHOUT))
def test_some_state_is_stuck_without_the_rule_that(mutant: Rule, explored: Explored) -> None:
    """Liveness can fail too: without these, some state never reaches a lasting open gate again."""
    assert stuck(explored.exploration.states, attended, mutant)


def test_a_reading_of_the_stored_gate_alone_misses_the_raw_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without 'the tighter of the raw keys and the last move' a raw drain would wait for the next tick."""
    monkeypatch.setattr(view, "effective", lambda state: effective(replace(state, raw=RawEdit.NONE)))
    prop, viewer = PROPERTIES["a_raw_drain_works_at_once"], Viewer()
    seen = (viewer.see(row) for row in Exploration().walk())
    assert any(prop.speaks_of(each) and not prop.keeps(each) for each in seen)


def test_each_property_that_a_left_out_rule_names_exists_once() -> None:
    assert {left_out.missed_by for left_out in LEFT_OUT} <= set(PROPERTIES)
    assert len({left_out.rule for left_out in LEFT_OUT}) == len(LEFT_OUT)
