"""Every command of a guide is typed by a test, and one that is not fails another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guides import GUIDES, Guide, Typed, strays, typed, unfollowed

PAGES = sorted(GUIDES.glob("*.md"))
TWO = """# A guide

```console
$ sluicegate gate show
The gate of queue default is admit.
$ sluicegate gate log \\
    --last 3
```
"""
FOLLOWS = 'def test_it() -> None:\n    with Guide.named("a-guide") as guide:\n        guide.next("sluicegate")\n'


def test_each_guide_that_has_commands_is_followed_by_a_test(repository: Path) -> None:
    assert unfollowed(GUIDES, repository / "tests") == []
    assert sum(1 for page in PAGES for _ in typed(page.read_text(encoding="utf-8"))) >= 60


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_stands_in_a_block_where_it_is_found(page: Path) -> None:
    assert strays(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("test", "named"),
    [
        ("", ["a-guide"]),
        (FOLLOWS, []),
        (f"@pytest.mark.slow\n{FOLLOWS}", ["a-guide"]),
        (f"pytestmark = [pytest.mark.e2e, pytest.mark.slow]\n{FOLLOWS}", ["a-guide"]),
        (FOLLOWS.replace("a-guide", "another"), ["a-guide"]),
        (f"@pytest.mark.parametrize('one', [1])\n{FOLLOWS}", []),
    ],
)
def test_a_guide_that_no_test_of_every_day_follows_is_named(tmp_path: Path, test: str, named: list[str]) -> None:
    (tmp_path / "a-guide.md").write_text(TWO)
    (tmp_path / "no-command.md").write_text("# Only words\n")
    (tmp_path / "test_guides.py").write_text(test)
    assert unfollowed(tmp_path, tmp_path) == named


def test_a_command_that_nobody_types_fails_whoever_follows_the_guide() -> None:
    with pytest.raises(AssertionError, match="sluicegate gate log"), Guide("a-guide", TWO) as guide:
        guide.next("sluicegate gate show")
    with pytest.raises(AssertionError, match="not `sluicegate gate log"), Guide("a-guide", TWO) as guide:
        guide.next("sluicegate gate log")
    with Guide("a-guide", TWO) as guide:
        assert guide.next("sluicegate gate show").shown == ("The gate of queue default is admit.",)
        assert guide.next("sluicegate gate log") == Typed("sluicegate gate log     --last 3")
        with pytest.raises(AssertionError, match="nothing more"):
            guide.next("sluicegate")


@pytest.mark.parametrize("language", ["", "sh", "text"])
def test_a_command_in_another_block_is_found(language: str) -> None:
    assert strays(f"# A guide\n\n```{language}\nsluicegate gate show\n```\n") == ["sluicegate gate show"]
    assert strays(f"1. In a list:\n\n   ```{language}\n   $ make drill\n   ```\n") == ["   $ make drill"]
