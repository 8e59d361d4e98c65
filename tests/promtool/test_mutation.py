"""The mutation score of the alerts' tests, by the real promtool."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from rules.generate import catalogue, chain
from rules.mutation.mutants import Mutant, mutants
from rules.mutation.reasons import UNKNOWN, reason
from rules.mutation.run import LEAST_KILLED, Trial, mutate
from rules.unit_tests import TestMaker
from sluicegate.__main__ import dispatch
from sluicegate.errors import SluicegateError
from sluicegate.records import AlertName
from sluicegate.settings import default_settings

# Two cores for a minute and a half.
CPU_S = 180


def test_the_tests_of_an_alert_kill_every_mutant_of_it() -> None:
    score = mutate(default_settings(), ["GateFlapping"])

    assert [(one.operator, one.change) for one in score.survived] == []
    assert len(score.killed) > 15


def test_what_no_test_notices_is_listed_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without the test of the end nobody looks at the keep.
    monkeypatch.setattr(TestMaker, "_from_start_to_end", TestMaker._firing)
    monkeypatch.setattr(TestMaker, "_forgets", TestMaker._firing)

    assert dispatch(["rules", "mutate", "--only", "GateFlapping"]) == 1
    said = capsys.readouterr().out
    assert "survived: SluicegateGateFlapping: keep: 30s to 32s: no test tells the two apart yet" in said
    assert "mutants killed (" in said


def test_an_alert_whose_tests_fail_as_it_is_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "_failed", lambda *_: {"SluicegateGateFlapping"})

    with pytest.raises(SluicegateError, match="The tests of SluicegateGateFlapping fail on the alert as it is"):
        mutate(default_settings(), ["GateFlapping"])


def test_a_reason_is_given_only_to_what_is_no_other_rule() -> None:
    settings = default_settings()
    alerts = {alert.name: alert for alert in catalogue(settings)}

    def reasons(name: AlertName, operator: str) -> set[str]:
        found: Iterator[Mutant] = mutants(alerts[name], chain(settings, [alerts[name]]).records, 2.0)
        return {reason(one) for one in found if one.operator == operator}

    assert reasons(AlertName.QUEUE_AGE_HIGH, "threshold") == {UNKNOWN}
    assert reasons(AlertName.DEADLINE_BREACH_FORECAST, "guard dropped") == {UNKNOWN}
    assert reasons(AlertName.WATCHDOG, "for") == {UNKNOWN}
    assert UNKNOWN not in reasons(AlertName.WATCHDOG, "keep")
    assert UNKNOWN not in reasons(AlertName.TELEMETRY_ABSENT, "record")
    assert UNKNOWN in reasons(AlertName.TELEMETRY_STALE, "record")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_at_least_95_in_100_mutants_of_all_alerts_are_killed_and_every_other_has_its_reason() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    score = mutate(default_settings())

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    every = len(score.killed) + len(score.survived)
    print(f"{score.share:.1%} of {every} mutants in {score.took_s:.0f} s, {used_s:.0f} s of CPU")
    assert score.share >= LEAST_KILLED
    assert {one.alert.name for one in (*score.killed, *score.survived)} == set(AlertName)
    assert [(one.alert.name, one.operator, one.change) for one in score.survived if reason(one) == UNKNOWN] == []
    assert used_s <= CPU_S
