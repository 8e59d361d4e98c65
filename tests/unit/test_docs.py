"""Every command, setting, metric, step and alert has its line in the docs, and the generated pages are up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import typer

from exporter.catalogue import BUILD, PAGE, QUEUE_FIGURES, READING
from exporter.figure import Figure
from runbooks import reference
from runbooks.document import schema
from runbooks.verbs.step import VerbName
from sluicegate import command_reference, settings_reference
from sluicegate.__main__ import WORDS
from sluicegate.command_reference import entries_of
from sluicegate.records import AlertName
from sluicegate.setting_rows import setting_rows
from sluicegate.settings import DRILL_CLASSES, parse
from sluicegate.settings_reference import sections


def without_line(names: Iterable[str], page: str, line: str) -> list[str]:
    """Give the names that no line of the page stands for; `line` is a pattern with NAME in it."""
    return [name for name in names if not re.search(line.replace("NAME", re.escape(name)), page, re.MULTILINE)]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("commands", command_reference.reference),
        ("settings", settings_reference.reference),
        ("runbooks", reference.reference),
    ],
)
def test_the_committed_page_is_what_the_code_generates(repository: Path, page: str, text: Callable[[], str]) -> None:
    committed = (repository / f"docs/reference/{page}.md").read_text(encoding="utf-8")
    assert committed == text(), "run `make generate`"


def test_every_command_has_its_section_with_an_example_of_it(repository: Path) -> None:
    page = (repository / "docs/reference/commands.md").read_text(encoding="utf-8")
    entries = [entry for word in WORDS for entry in entries_of(word)]
    assert without_line(WORDS, page, r"^## NAME$") == []
    assert without_line((entry.words for entry in entries), page, r"^### NAME$") == []
    assert [entry.words for entry in entries if not entry.example.startswith(entry.words)] == []


def test_every_argument_and_option_says_what_it_is_for() -> None:
    entries = [entry for word in WORDS for entry in entries_of(word)]
    assert [(entry.words, one.name) for entry in entries for one in entry.options if not one.says] == []


def test_a_command_without_help_for_its_option_is_seen() -> None:
    app = typer.Typer(add_completion=False)

    @app.command()
    def bare(silent: str = "") -> None:
        """Do nothing."""

    (option,) = command_reference.entry("sluicegate bare", typer.main.get_command(app)).options
    assert (option.name, option.says) == ("--silent TEXT", "")


def test_every_setting_has_its_row_with_default_bound_and_purpose(repository: Path) -> None:
    page = (repository / "docs/reference/settings.md").read_text(encoding="utf-8")
    rows = [row for section in sections() for row in section.rows]
    assert without_line((row.name for row in rows), page, r"^\| `NAME` \| [^|]+ \|") == []
    assert [row.name for row in rows if not row.says or not row.default] == []


def test_the_reference_has_every_setting_that_the_listing_has() -> None:
    named: dict[str, Any] = {
        "contract": {"classes": DRILL_CLASSES, "cost_classes": {"browser": {}}},
        "automation": {
            "commands": {"restart": {"argv": ["true"]}},
            "receivers": {"on-call": {"kind": "webhook", "url": "http://127.0.0.1:1"}},
        },
    }
    listed = {row.name for row in setting_rows(parse(named, "a test"), None)}
    chosen = r"(contract\.(?:cost_)?classes|automation\.(?:commands|receivers))\.[a-z-]+"
    documented = {row.name for section in sections() for row in section.rows}
    assert {re.sub(chosen, r"\1.{name}", name) for name in listed} == documented - {
        "contract.classes",
        "contract.cost_classes",
        "automation.commands",
        "automation.receivers",
    }


def test_every_metric_has_its_section(repository: Path) -> None:
    page = (repository / "docs/reference/metrics.md").read_text(encoding="utf-8")
    figures: tuple[Figure[Any], ...] = (*QUEUE_FIGURES, *READING, *PAGE, *BUILD)
    assert without_line((figure.name for figure in figures), page, r"^### NAME$") == []


def test_every_step_verb_has_its_section_with_every_parameter(repository: Path) -> None:
    page = (repository / "docs/reference/runbooks.md").read_text(encoding="utf-8")
    assert without_line(VerbName, page, r"^### NAME$") == []
    for verb in VerbName:
        section = page.split(f"\n### {verb}\n")[1].split("\n### ")[0]
        assert without_line(schema()["$defs"][verb]["properties"], section, r"^\| `NAME` \|") == []


def test_every_alert_has_its_page_with_what_a_person_does(repository: Path) -> None:
    for name in AlertName:
        page = (repository / f"docs/runbooks/{name}.md").read_text(encoding="utf-8")
        assert without_line([name], page, r"^# NAME$") == []


def test_a_name_without_its_line_is_found() -> None:
    page = "### sluicegate gate show\n| `queue` | `default` |\n"
    assert without_line(["sluicegate gate show"], page, r"^### NAME$") == []
    assert without_line(["sluicegate gate"], page, r"^### NAME$") == ["sluicegate gate"]
    assert without_line(["queue", "que.e"], page, r"^\| `NAME` \| [^|]+ \|") == ["que.e"]


def sections_cited(repository: Path) -> set[str]:
    """Give every section of the contract that code and tests name, `contract §3, §4` and `§3 to §7` included."""
    run = ["git", "grep", "-hoE", r"[Cc]ontract §[0-9.]+((,| to| and) §[0-9.]+)*", "--", "*.py", "*.lua"]
    found = subprocess.run(run, cwd=repository, capture_output=True, text=True, check=True).stdout
    return {number.rstrip(".") for number in re.findall(r"§([0-9.]+)", found)}


def test_every_section_of_the_contract_that_the_code_cites_is_there(repository: Path) -> None:
    page = (repository / "docs/concepts/contract.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^##+ ([0-9]+(?:\.[0-9]+)?)\.? ", page, re.MULTILINE))
    cited = sections_cited(repository)
    assert {"3", "6", "7.2"} <= cited
    assert cited - sections == set()


@pytest.mark.timeout(120)
def test_the_docs_are_a_site_in_which_every_page_has_its_place_and_every_link_leads_somewhere(
    repository: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    # Its own font, scripts and styles: a site that works without a network.
    assert re.findall(r'(?:src|href)="https?://(?!squidfunk)[^"]+\.(?:js|css|woff2?)"', page) == []
