"""Every answer to opening a run has its sentence, and what stands in the way its command."""

from __future__ import annotations

import pytest

from automation.sentences import opening_said
from sluicegate.gate_events import Answer
from sluicegate.replies import GateAnswer


@pytest.mark.parametrize("answer", Answer)
def test_every_answer_is_a_sentence(answer: Answer) -> None:
    said = opening_said(GateAnswer(answer.value, "drain", 1, run="r1"))
    assert said.sentence.endswith(".")
    assert ("is open" in said.sentence) == (answer is Answer.MOVED)


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        (Answer.RUN_LIVE, "sluicegate automation abort r1"),
        (Answer.DUPLICATES, "sluicegate gate acknowledge"),
        (Answer.UNREADABLE, "sluicegate gate show"),
    ],
)
def test_what_stands_in_the_way_names_its_command(answer: Answer, command: str) -> None:
    assert command in opening_said(GateAnswer(answer.value, "drain", 1, run="r1")).hint


def test_a_refusal_says_which_rule_refused() -> None:
    said = opening_said(GateAnswer("refused", "drain", 1, why="cooldown"))
    assert said.sentence == "No run was opened: cooldown."
