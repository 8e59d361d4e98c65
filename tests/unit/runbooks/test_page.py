"""The committed pages are the ones the code renders."""

from __future__ import annotations

from pathlib import Path

import pytest

from runbooks import library
from runbooks.context import Context
from runbooks.page import page
from runbooks.plan import step_text
from sluicegate.settings import default_settings

CONTEXT = Context(default_settings(), run_id="RUN")


@pytest.mark.parametrize("name", library.builtin_names())
def test_the_committed_page_is_up_to_date(name: str, repository: Path) -> None:
    committed = (repository / "docs" / "runbooks" / f"{name}.md").read_text(encoding="utf-8")
    assert committed == page(library.load_builtin(name), CONTEXT), f"run `sluicegate runbooks docs {name} --out …`"


@pytest.mark.parametrize("name", library.builtin_names())
def test_a_page_holds_every_step_and_every_reason(name: str) -> None:
    runbook = library.load_builtin(name)
    text = page(runbook, CONTEXT)
    for step in runbook.steps:
        assert f"### {step.seq}. {step.verb}\n" in text
        for part in step_text(step, runbook, CONTEXT).split("; "):
            assert f"- {part[0].upper()}{part[1:]}.\n" in text
    for reason in runbook.rollback.reasons.values() if runbook.rollback is not None else ():
        assert f"| `{reason}` |" in text
