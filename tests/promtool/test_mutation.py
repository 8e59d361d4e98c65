"""The mutation score of an alert's tests, by the real promtool."""

from __future__ import annotations

import pytest

from rules.mutation import run
from rules.mutation.reasons import reason
from rules.mutation.run import mutate
from rules.unit_tests import TestMaker
from sluicegate.__main__ import dispatch
from sluicegate.errors import SluicegateError
from sluicegate.settings import default_settings


def test_the_tests_of_an_alert_kill_every_mutant_of_it() -> None:
    score = mutate(default_settings(), ["GateFlapping"])

    assert [(one.operator, one.change) for one in score.survived] == []
    assert len(score.killed) > 15


def test_what_no_test_notices_is_listed_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without the test of the end nobody looks at the keep.
    monkeypatch.setattr(TestMaker, "_from_start_to_end", TestMaker._two_exporters)
    monkeypatch.setattr(TestMaker, "_forgets", TestMaker._two_exporters)

    assert dispatch(["rules", "mutate", "--only", "GateFlapping"]) == 1
    said = capsys.readouterr().out
    assert "survived: SluicegateGateFlapping: keep: 30s to 32s: no test tells the two apart yet" in said
    assert "mutants killed (" in said


def test_an_alert_whose_tests_fail_as_it_is_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_failed", lambda *_: {"SluicegateGateFlapping"})

    with pytest.raises(SluicegateError, match="The tests of SluicegateGateFlapping fail on the alert as it is"):
        mutate(default_settings(), ["GateFlapping"])


@pytest.mark.slow
def test_a_mutant_that_survives_by_its_nature_says_why() -> None:
    score = mutate(default_settings(), ["JobsBlocked"])

    assert {reason(one) for one in score.survived} <= {
        "two exporters show the same but for a moment, and the figure only guards or dates another"
    }
