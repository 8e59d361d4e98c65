"""What is committed is what the generator writes today."""

from __future__ import annotations

from pathlib import Path

from rules.generate import render_all, render_pages
from sluicegate.generated import outdated
from sluicegate.settings import default_settings


def test_generated_rules_are_up_to_date(repository: Path) -> None:
    assert outdated(render_all(default_settings(), repository / "rules" / "generated")) == ()


def test_runbook_pages_are_up_to_date_and_none_is_left_over(repository: Path) -> None:
    folder = repository / "docs" / "runbooks"
    pages = render_pages(default_settings(), folder)

    assert outdated(pages) == ()
    assert set(folder.glob("Sluicegate*.md")) == set(pages)


def test_every_page_of_an_alert_names_the_commands_of_a_night(tmp_path: Path) -> None:
    pages = render_pages(default_settings(), tmp_path)
    assert len(pages) >= 12
    for text in pages.values():
        for command in ("gate show", "automation show RUN", "automation approve RUN fix", "automation abort RUN"):
            assert f"`sluicegate {command}" in text
        assert "`sluicegate automation run drain-and-recover --as NAME --reason WHY`" in text
        assert "`sluicegate queue show JOB`" in text
