"""The tests that stand in runbooks: all pass, and whatever they say otherwise is seen to fail."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runbooks import library
from runbooks.conditions import FIGURES
from runbooks.context import Context
from runbooks.given import _PUT, AT_MS, reading
from runbooks.model import Runbook
from runbooks.rehearsal import rehearse
from runbooks.rehearsal_model import Given, GivenGate, RunbookTest, State
from sluicegate.errors import SettingsError
from sluicegate.settings import default_settings, faster
from tests.unit.runbooks.files import changed, shipped

CONTEXT = Context(default_settings())
FOLDER = library.folder_of(library.load_builtin("drain-and-recover"))
BOOKS = [library.load_builtin(name) for name in library.builtin_names()]
CASES = [(book, test) for book in BOOKS for test in book.tests]
IDS = [f"{book.name}: {test.name}" for book, test in CASES]


def differences(book: Runbook, folder: Path = FOLDER) -> list[str]:
    return [text for report in rehearse(book, CONTEXT, folder) for text in report.differences]


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_every_shipped_runbook_has_tests_and_all_of_them_pass(book: Runbook) -> None:
    assert len(book.tests) >= 5
    assert differences(book) == []
    quick = Context(faster(default_settings(), 5))
    assert len(rehearse(book, quick, FOLDER)) == len(book.tests)


def turned(test: RunbookTest) -> list[RunbookTest]:
    """Give the test once for each thing it says, with that said otherwise."""
    then, wrong = test.then, []
    if then.starts is not None:
        wrong.append(replace(then, starts=not then.starts))
    if then.state is not None:
        wrong += [replace(then, state=state) for state in State if state is not then.state]
    if then.admission is not None:
        wrong.append(replace(then, admission={"open": "closed", "closed": "open"}[then.admission]))
    if then.reason is not None:
        wrong.append(replace(then, reason="another"))
    return [replace(test, then=one) for one in wrong]


@pytest.mark.parametrize(("book", "test"), CASES, ids=IDS)
def test_whatever_a_test_says_otherwise_fails(book: Runbook, test: RunbookTest) -> None:
    wrong = turned(test)
    assert wrong
    for one in wrong:
        assert differences(replace(book, tests=(one,))) != [], one.then


def case(test: dict[str, Any], name: str = "drain-and-recover") -> list[str]:
    def change(body: dict[str, Any]) -> None:
        body["tests"] = [{"name": "a case", **test}]

    return differences(changed(change, name))


def test_what_came_out_otherwise_is_named() -> None:
    metrics = {"provider_5xx_rate": 0.01}
    assert case({"given": {"metrics": metrics}, "then": {"starts": True, "reason": "none of it"}}) == [
        "starts is false, not true",
        "reason is not_confirmed, not none of it",
    ]


def test_a_table_is_looked_at_row_after_row_in_its_time() -> None:
    metrics = {"canary_ok_count": [0, 0, 0], "canary_failures": 0}
    when = {"step": "canary", "every": "59s"}
    assert case({"given": {"metrics": metrics}, "when": when, "then": {"state": "waiting"}}) == []
    when = {"step": "canary", "every": "60s"}
    assert case({"given": {"metrics": metrics}, "when": when, "then": {"state": "rolled_back"}}) == []


@pytest.mark.parametrize(
    ("test", "match"),
    [
        ({"given": {"webhook": "payloads/none.json"}, "then": {"starts": True}}, "none.json cannot be read"),
        ({"given": {"webhook": "drain-and-recover.yaml"}, "then": {"starts": True}}, "is none: This is not an Alert"),
        (
            {"given": {}, "when": {"step": "audit"}, "then": {"state": "done"}},
            "step audit, which drain-and-recover has",
        ),
        ({"given": {}, "then": {"state": "done"}}, "either whether a run starts, or what a step comes to"),
        ({"given": {}, "when": {"step": "fix"}, "then": {"starts": True}}, "either whether a run starts"),
        ({"given": {"metrics": {"cpu": 1}}, "then": {"starts": True}}, "no such figure exists"),
        ({"given": {}, "when": {"step": "fix", "after": "5"}, "then": {"state": "done"}}, "not a duration"),
        ({"given": {}, "then": {"starts": True, "state": "splendid"}}, "not one of waiting"),
        ({"given": {"metrics": {"worker_inflight": []}}, "then": {"starts": True}}, "worker_inflight"),
        ({"given": {"metrics": {"unknown_jobs": math.nan}}, "then": {"starts": True}}, "written no_data"),
        ({"given": {"metrics": {"unknown_jobs": [1, math.inf]}}, "then": {"starts": True}}, "unknown_jobs"),
        ({"given": {"metrics": {"unknown_jobs": 10**400}}, "then": {"starts": True}}, "unknown_jobs"),
    ],
)
def test_a_test_that_can_say_nothing_is_refused(test: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        case(test)


def test_every_figure_of_a_condition_can_be_given_and_is_read_back() -> None:
    assert set(_PUT) == set(FIGURES)
    for name, figure in FIGURES.items():
        value = 0.5 if figure.unit == "ratio" else 1.0
        given = Given(None, {name: (value, None)}, GivenGate())
        contract = CONTEXT.contract
        assert figure.read(reading(given, 0, AT_MS, "default", contract)) == value, name


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_no_data_is_no_sample(name: str) -> None:
    seen = reading(Given(None, {name: (None,)}, GivenGate()), 0, AT_MS, "default", CONTEXT.contract)
    value = FIGURES[name].read(seen)
    assert value is None or math.isnan(value)


def test_a_runbook_of_ones_own_takes_its_payloads_from_its_folder(tmp_path: Path) -> None:
    body = shipped("reconcile-unknown")
    (tmp_path / "payloads").mkdir()
    (tmp_path / "payloads" / "unknown-not-reconciled.json").write_bytes(
        (FOLDER / "payloads" / "unknown-not-reconciled.json").read_bytes()
    )
    book = changed(lambda copy: copy.update(body), "reconcile-unknown")
    assert differences(book, tmp_path) == []
