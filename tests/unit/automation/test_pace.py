"""A question is asked at a pace, each for itself."""

from __future__ import annotations

from automation.pace import Pace


def test_a_question_is_due_again_after_its_time_and_holds_no_other_up() -> None:
    now = 100.0
    pace = Pace(1.0, lambda: now)
    assert [pace.due("r1/4"), pace.due("r1/4"), pace.due("r2/4")] == [True, False, True]
    now = 100.9
    assert not pace.due("r1/4")
    now = 101.0
    assert [pace.due("r1/4"), pace.due("r1/4")] == [True, False]
