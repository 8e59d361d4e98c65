"""`sluicegate rules …` as a person types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rules.generate import ALERTMANAGER_FILE, RULES_FILE
from sluicegate.__main__ import dispatch
from sluicegate.settings import default_settings


def test_generate_writes_everything_once_and_check_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "monitoring")

    assert dispatch(["rules", "generate", "--out", out]) == 0
    names = {path.name for path in (tmp_path / "monitoring").iterdir()}
    classes = [f"forecast-{name}." for name in default_settings().contract.classes]
    budgets = [f"budget-{window}." for window in ("3600s", "21600s", "86400s", "259200s")]
    tests = {f"sluicegate.{which}test.yml" for which in ("", "minutes.", *classes, *budgets)}
    assert names == {RULES_FILE, *tests, ALERTMANAGER_FILE, "runbooks"}
    capsys.readouterr()
    assert dispatch(["rules", "generate", "--out", out, "--check"]) == 0
    assert capsys.readouterr().out == "42 of 42 files were up to date.\n"


def test_check_names_what_is_out_of_date_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "monitoring"
    dispatch(["rules", "generate", "--out", str(out)])
    (out / RULES_FILE).write_text("groups: []\n")
    (out / ALERTMANAGER_FILE).unlink()
    capsys.readouterr()

    assert dispatch(["rules", "generate", "--out", str(out), "--check"]) == 1
    said = capsys.readouterr().out
    assert f"out of date: {out / RULES_FILE}" in said
    assert f"out of date: {out / ALERTMANAGER_FILE}" in said
    assert (out / RULES_FILE).read_text() == "groups: []\n"
    assert not (out / ALERTMANAGER_FILE).exists()


def test_the_receivers_that_people_filled_in_stay_when_the_file_is_written_again(tmp_path: Path) -> None:
    settings, out = tmp_path / "sluicegate.yaml", tmp_path / "monitoring"
    settings.write_text("contract: {classes: {lint: {deadline_s: 60}}}\n")
    generate = ["rules", "generate", "--settings", str(settings), "--out", str(out)]
    assert dispatch(generate) == 0
    file = out / ALERTMANAGER_FILE
    own = '  - name: "pages"\n    # ann, then bob\n    pagerduty_configs: [{routing_key_file: /run/key}]\n'
    file.write_text(file.read_text().replace('  - name: "pages"\n', own))
    assert dispatch([*generate, "--check"]) == 0, "what is theirs is not out of date"

    settings.write_text(settings.read_text() + "monitoring: {group_interval_s: 17}\n")
    assert dispatch(generate) == 0
    text = file.read_text()
    assert own in text
    assert "group_interval: 17s" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("# Yours up to here.", ""), "does not say which of its receivers are yours"),
        (lambda text: text.replace('  - name: "heartbeat"\n', ""), "has no receiver heartbeat"),
        (lambda text: text.replace('"pages"\n', '"pages\n', 2), "has no receiver pages"),
        (lambda _: "route: {receiver: mine}\nreceivers: [{name: mine}]\n", "does not say which"),
    ],
)
def test_a_file_whose_own_receivers_would_be_lost_is_not_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[str], str], said: str
) -> None:
    assert dispatch(["rules", "generate", "--out", str(tmp_path)]) == 0
    file = tmp_path / ALERTMANAGER_FILE
    file.write_text(change(file.read_text()))
    before = file.read_text()
    assert dispatch(["rules", "generate", "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert file.read_text() == before


def test_settings_file_sets_the_thresholds(tmp_path: Path) -> None:
    settings = tmp_path / "sluicegate.yaml"
    settings.write_text(
        "queue: night\ncontract: {classes: {lint: {deadline_s: 60}}, thresholds: {drain_age_p95_seconds: 31}}\n"
    )

    assert dispatch(["rules", "generate", "--settings", str(settings), "--out", str(tmp_path / "out")]) == 0
    assert 'queue:queue_age_p95_seconds:max{queue="night"} >= 31' in (tmp_path / "out" / RULES_FILE).read_text()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")

    assert dispatch(["rules", "generate", "--out", str(tmp_path / "file" / "out")]) == 2
    said = capsys.readouterr().err
    assert "can't be written: Not a directory." in said
    assert "--out" in said


def test_missing_promtool_is_one_sentence_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert dispatch(["rules", "test"]) == 2
    assert capsys.readouterr().err.startswith("promtool is not on the PATH")


def test_show_lists_every_alert_with_its_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["rules", "show"]) == 0
    said = capsys.readouterr().out
    line = next(line for line in said.splitlines() if "SluicegateQueueAgeCritical" in line)
    assert "drain" in line
    assert "page" in line
    assert "SluicegateWatchdog" in said


def test_mutants_of_no_alert_are_no_score(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["rules", "mutate", "--only", "NoSuchAlert"]) == 2
    assert "No alert's name holds 'NoSuchAlert'." in capsys.readouterr().err
