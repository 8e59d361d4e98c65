"""Figures that go wrong: no alert ends in silence for that, and none fires, by the real promtool."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from rules.disturbances import Disturbance
from rules.generate import RULES_FILE, slices
from rules.promtool import judge
from sluicegate.generated import write
from sluicegate.records import AlertName
from sluicegate.settings import default_settings

Change = Callable[[str], str]


@cache
def all_slices() -> dict[str, dict[str, str]]:
    return dict(slices(default_settings(), disturbed=True))


def judged(title: str, folder: Path, change: Change = str) -> tuple[bool, str]:
    """Run the tests of one slice on its rules, as they are or changed."""
    files = {folder / name: text for name, text in all_slices()[title].items()}
    rules = folder / RULES_FILE
    write({**files, rules: change(files[rules])})
    verdict = judge(next(path for path in files if path != rules))
    return verdict.passed, verdict.output


def slice_of(alert: AlertName) -> str:
    return next(title for title in all_slices() if title.endswith(f"-{alert}"))


def test_every_alert_is_disturbed_in_every_way_but_the_watchdog_which_reads_nothing() -> None:
    told = "".join(text for files in all_slices().values() for text in files.values())

    for alert in AlertName:
        for kind in Disturbance:
            assert (f'name: "{alert}, {kind} while it fires"' in told) is (alert != AlertName.WATCHDOG)
    assert all(told.count(f'name: "{kind} on a healthy queue"') >= 3 for kind in Disturbance)


def test_an_alert_on_figures_that_go_wrong_does_not_end_in_silence(tmp_path: Path) -> None:
    passed, said = judged(slice_of(AlertName.QUEUE_AGE_HIGH), tmp_path)

    assert passed, said


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: re.sub(r" +keep_firing_for: .*\n", "", text), id="nothing is kept"),
        pytest.param(lambda text: re.sub(r"absent\((\S+) == .*\)", r"absent(\1)", text), id="no number is a figure"),
    ],
)
def test_an_alert_that_would_end_in_silence_is_found(change: Change, tmp_path: Path) -> None:
    passed, said = judged(slice_of(AlertName.QUEUE_AGE_HIGH), tmp_path, change)

    assert not passed
    assert "got: {} 0E+00" in said


def test_an_alert_that_would_fire_on_a_healthy_queue_is_found(tmp_path: Path) -> None:
    patient = next(title for title in all_slices() if title.startswith("sluicegate.dark-minutes-0-"))

    passed, said = judged(patient, tmp_path, lambda text: re.sub(r"\((\S+) == \S+\) != ", r"\1 != ", text))

    assert not passed
    assert "got: {} 1" in said
