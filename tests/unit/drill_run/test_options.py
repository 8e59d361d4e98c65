"""What a person may ask of a drill, and what is refused with a sentence and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from drill.options import check_writable, parse_choice, parse_duration, parse_mix, parse_rate
from drill.profile import ProfileName
from drill.scenarios import find_scenario
from sluicegate.errors import UsageError
from sluicegate.settings import DRILL_CLASSES


@pytest.mark.parametrize(("text", "per_s"), [("12/s", 12), ("0.5/s", 0.5), ("720/m", 12), ("43200/h", 12)])
def test_a_rate_has_a_unit(text: str, per_s: float) -> None:
    assert parse_rate(text) == pytest.approx(per_s)


@pytest.mark.parametrize("text", ["12", "0/s", "-1/s", "12/day", "201/s", "", "twelve/s", "1e3/s"])
def test_a_bad_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--rate") as refused:
        parse_rate(text)
    assert "--rate 12/s" in refused.value.hint


@pytest.mark.parametrize(("text", "seconds"), [("180s", 180), ("3m", 180), ("500ms", 0.5)])
def test_a_duration_has_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["180", "0s", "forever", "8000h"])
def test_a_bad_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--duration"):
        parse_duration(text)


def test_a_mix_is_shares_that_add_up_to_one() -> None:
    assert parse_mix("lint-fix:70,test-patch:25,refactor-plan:5", DRILL_CLASSES) == pytest.approx(
        {"lint-fix": 0.70, "test-patch": 0.25, "refactor-plan": 0.05}
    )
    assert parse_mix("lint-fix:1, test-patch:3", DRILL_CLASSES) == {"lint-fix": 0.25, "test-patch": 0.75}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("lint-fx:70", "'lint-fx' is not a declared class"),
        ("lint-fix:70,lint-fix:30", "'lint-fix' stands in it twice"),
        ("lint-fix", "the weight of 'lint-fix' is ''"),
        ("lint-fix:-1", "the weight of 'lint-fix' is '-1'"),
        ("lint-fix:0", "the weights add up to 0"),
        ("", "'' is not a declared class"),
    ],
)
def test_a_bad_mix_is_refused_by_its_part(text: str, named: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_mix(text, DRILL_CLASSES)
    assert named in refused.value.message
    assert "--mix lint-fix:70" in refused.value.hint


def test_a_choice_lists_what_there_is() -> None:
    assert parse_choice("--profile", "fast", ProfileName) is ProfileName.FAST
    with pytest.raises(UsageError, match="--profile 'quick'") as refused:
        parse_choice("--profile", "quick", ProfileName)
    assert refused.value.hint == "Choose one of full, fast."


def test_an_unknown_scenario_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="There is no scenario `worker-crsh`") as refused:
        find_scenario("worker-crsh")
    assert "Did you mean `worker-crash`?" in refused.value.hint


def test_a_report_folder_that_can_be_made_is_not_made_yet(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wanted", ["file", "file/report"])
def test_a_report_folder_that_is_a_file_or_below_one_is_refused(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"The report can't be written to .*: a file, no folder\.") as refused:
        check_writable(tmp_path / wanted)
    assert "--report-dir" in refused.value.hint


def test_a_report_folder_on_a_file_system_without_writing_is_refused() -> None:
    with pytest.raises(UsageError, match="The report can't be written to"):
        check_writable(Path("/proc/report"))
