"""What other settings change in the rules, as a person types and sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rules.backtest.comparison import Comparison, Effect
from rules.backtest.evaluations import Evaluations
from rules.backtest.harm import Harm, Miss
from rules.backtest.history import Inputs
from rules.backtest.replay import Firing
from rules.backtest.run import Backtest, Result, Tried, utilization
from rules.difference import Difference, with_values
from rules.difference_shown import comparison_lines, difference_json
from rules.generate import catalogue
from rules.scope import Scope
from sluicegate.__main__ import dispatch
from sluicegate.errors import SettingsError, UsageError
from sluicegate.records import AlertName
from sluicegate.settings import default_settings
from tests.unit.rules.settings import fast

BEFORE = with_values(default_settings(), ())
LOWER = "thresholds.reject_age_p95_seconds=17"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert dispatch(["rules", "diff", *words]) == 0
    return capsys.readouterr().out


def test_one_threshold_changes_one_setting_and_the_rules_that_compare_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "--set", LOWER).splitlines()
    assert lines[:3] == ["contract.thresholds.reject_age_p95_seconds: 20 → 17", "", "Rules that change: 3."]
    assert '  - queue:queue_age_p95_seconds:max{queue="default"} >= 20' in lines
    assert '  + queue:queue_age_p95_seconds:max{queue="default"} >= 17' in lines
    named = [line for line in lines[3:] if not line.startswith("  ")]
    assert named == [AlertName.QUEUE_AGE_HIGH, AlertName.REOPENED_UNSAFE, AlertName.THRESHOLD_DRIFT]


def test_two_files_are_compared_and_a_value_goes_over_the_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("contract: {classes: {lint: {deadline_s: 60}}}\n")
    new.write_text("contract: {classes: {lint: {deadline_s: 90}, plan: {deadline_s: 900}}}\n")
    lines = said(capsys, "--settings", str(old), "--with", str(new), "--set", "monitoring.alert_for_s=6").splitlines()
    assert "contract.classes.lint.deadline_s: 60 → 90" in lines
    assert "contract.classes.plan.deadline_s: (not there) → 900" in lines
    assert "monitoring.alert_for_s: 4 → 6" in lines
    assert "SluicegateQueueAgeCritical\t21 s\t23 s" in lines


def test_the_same_settings_are_said_to_be_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--set", "thresholds.reject_age_p95_seconds=20.0") == "The settings are the same.\n"


def test_a_setting_that_makes_no_rule_is_told_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--set", "worker.idle_wait_s=0.3") == "worker.idle_wait_s: 0.2 → 0.3\n\nNo rule changes.\n"


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    body = json.loads(said(capsys, "--set", LOWER, "--json"))
    assert body["settings"] == [{"name": "contract.thresholds.reject_age_p95_seconds", "before": "20", "after": "17"}]
    assert next(rule["name"] for rule in body["rules"]) == "SluicegateQueueAgeHigh"
    assert "backtest" not in body


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to compare with"),
        (["--set", "thresholds.reject_age_p95_seconds"], "has no value"),
        (["--set", "thresholds.rejct_age_p95_seconds=17"], "Did you mean thresholds.reject_age_p95_seconds?"),
        (["--set", "frobnicate=1"], "lists every setting"),
        (["--set", "thresholds.reject_age_p95_seconds=[1"], "is no value"),
        (["--set", "thresholds.reject_age_p95_seconds=much"], "is not valid"),
        (["--set", "thresholds.reject_age_p95_seconds=37"], "ages must grow"),
        (["--set", LOWER, "--backtest"], "whose history"),
        (["--set", "queue=night", "--backtest", "--prometheus-url", "http://127.0.0.1:1"], "one queue"),
        (["--with", "/nowhere.yaml"], "cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["rules", "diff", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_value_is_put_where_it_belongs_and_checked_as_a_file_is() -> None:
    changed = with_values(BEFORE, ["thresholds.drain_age_p95_seconds=30", "monitoring.exporter_job=queues"])
    assert changed.contract.thresholds.drain_age_p95_seconds == 30
    assert changed.monitoring.exporter_job == "queues"
    with pytest.raises(SettingsError):
        with_values(BEFORE, ["contract.max_running=0"])
    with pytest.raises(UsageError):
        with_values(BEFORE, ["contract=1"])


def test_a_change_of_the_records_is_seen_too() -> None:
    difference = Difference.between(BEFORE, with_values(BEFORE, ["monitoring.exporter_job=queues"]))
    assert "queue:queue_age_p95_seconds:max" in [rule.name for rule in difference.rules]
    assert difference.lateness == ()


def replayed(pages: dict[AlertName, list[tuple[int, int]]], in_vain: set[tuple[int, int]]) -> Backtest:
    """Give a replay in which these alerts had these pages, around one miss at 100 s."""
    settings = fast()
    results = []
    for alert in catalogue(settings):
        spans = tuple(Firing(begun * 1000, ended * 1000) for begun, ended in pages.get(alert.name, []))
        vain = tuple(one for one in spans if (one.from_ms // 1000, one.to_ms // 1000) in in_vain)
        results.append(Result(Tried.of(alert), (), spans, vain))
    harm = Harm((Miss(100_000, "lint-fix", 3),), (), 60_000)
    beside = Result(utilization(Scope(settings)), (), (), ())
    evaluations = Evaluations.regular(0, 200_000, 1000)
    return Backtest(settings, Inputs.RECORDS, evaluations, 0, 200_000, harm, tuple(results), beside)


CRITICAL, HIGH = AlertName.QUEUE_AGE_CRITICAL, AlertName.QUEUE_AGE_HIGH
WAS = replayed({CRITICAL: [(90, 110)], HIGH: [(10, 12), (80, 110)]}, {(10, 12)})
NOW = replayed({CRITICAL: [(85, 110), (150, 152)], HIGH: [(80, 110)]}, {(150, 152)})


def test_pages_appear_vanish_and_move() -> None:
    changes = Comparison(WAS, NOW).changes
    assert [(one.alert, one.effect, one.at_ms, one.earlier_ms, one.longer_ms, one.for_nothing) for one in changes] == [
        (HIGH, Effect.VANISHES, 10_000, 0, 0, True),
        (CRITICAL, Effect.MOVES, 85_000, 5_000, 0, False),
        (CRITICAL, Effect.APPEARS, 150_000, 0, 0, True),
    ]


def test_people_read_what_it_does_to_leads_and_false_pages() -> None:
    text = "\n".join(comparison_lines(Comparison(WAS, NOW)))
    assert "SluicegateQueueAgeHigh\tvanishes; it lasted 2 s\tfor nothing" in text
    assert "SluicegateQueueAgeCritical\tbegins 5 s earlier\tabout harm" in text
    assert "SluicegateQueueAgeCritical\tappears, for 2 s\tfor nothing" in text
    assert "first page 15 s before: SluicegateQueueAgeCritical, before: 10 s before: SluicegateQueueAgeCritical" in text
    assert text.endswith("False pages: 0 → 1.")


def test_a_page_that_is_not_about_deadlines_is_not_said_to_be_about_harm() -> None:
    silent = replayed({CRITICAL: [(90, 110)], AlertName.CONTROLLER_SILENT: [(20, 30)]}, set())
    changes = Comparison(replayed({CRITICAL: [(90, 110)]}, set()), silent)
    assert "SluicegateControllerSilent\tappears, for 10 s\tnot about deadlines" in "\n".join(comparison_lines(changes))
    body = json.loads(difference_json(Difference.between(BEFORE, BEFORE), changes))["backtest"]
    assert [change["about_deadlines"] for change in body["changes"]] == [False]


def test_a_change_without_effect_is_said_to_have_none() -> None:
    text = "\n".join(comparison_lines(Comparison(WAS, WAS)))
    assert "nothing would have fired otherwise" in text
    assert "(as before)" in text


def test_programs_get_every_change() -> None:
    body = json.loads(difference_json(Difference.between(BEFORE, BEFORE), Comparison(WAS, NOW)))["backtest"]
    assert [change["effect"] for change in body["changes"]] == ["vanishes", "moves", "appears"]
    assert (body["before"]["false_pages"], body["after"]["false_pages"]) == (0, 1)
