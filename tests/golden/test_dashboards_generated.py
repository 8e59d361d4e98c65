"""What is committed is what the generator writes today."""

from __future__ import annotations

from pathlib import Path

from dashboards.generate import render_all
from sluicegate.generated import outdated
from sluicegate.settings import default_settings


def test_generated_dashboards_are_up_to_date_and_none_is_left_over(repository: Path) -> None:
    folder = repository / "dashboards" / "generated"
    files = render_all(default_settings(), folder)

    assert outdated(files) == ()
    assert set(folder.iterdir()) == set(files)
