"""The report: one page that stands for itself, the audit log in order, and the figures under their own names."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from drill.interrupt import Interrupted
from drill.load import Jobs
from drill.options import DrillOptions
from drill.profile import ProfileName
from drill.report import AUDIT, FIGURES, LATEST, PICTURE, write_report
from drill.run import Outcome
from drill.scenarios import SCENARIOS
from drill.server import ServerKind
from drill.timeline import Mark
from drill.verdict import Evidence, Said, judge
from sluicegate.telemetry import STABLE_FIELDS
from tests.readings import AT_MS
from tests.unit.drill_run.story import CHOSEN, RUN, move, story, timeline

STARTED_AT = datetime(2026, 11, 29, 15, 0, 0, tzinfo=UTC)
MAIN_JOB = SCENARIOS["provider-degradation"]


def options(folder: Path) -> DrillOptions:
    mix = {"lint-fix": 1.0}
    return DrillOptions(MAIN_JOB.name, ProfileName.FAST, ServerKind.AUTO, 12, 0, mix, 7, keep=False, report_dir=folder)


def outcome(evidence: Evidence) -> Outcome:
    verdict = judge(MAIN_JOB.expectations, evidence)
    return Outcome(MAIN_JOB, CHOSEN, STARTED_AT, ("Redis 7.0.15 (/usr/bin/redis-server)",), evidence, verdict)


class Loads(HTMLParser):
    """Collect what a page would load, and check that its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]


def test_the_page_loads_nothing_and_runs_nothing(tmp_path: Path) -> None:
    page = write_report(options(tmp_path), outcome(story())).read_text()
    seen = Loads()
    seen.feed(page)
    assert seen.loaded == []
    assert "script" not in seen.tags
    assert "svg" in seen.tags
    assert not re.search(r"url\(|@import", page)


def test_the_page_shows_every_row_every_move_and_every_step(tmp_path: Path) -> None:
    made = outcome(story())
    page = write_report(options(tmp_path), made).read_text()
    assert made.verdict is not None
    for row in made.verdict.rows:
        assert row.name in page
    for text in ("admission_threshold", "provider_or_queue_age", RUN, "burn_down", "Redis 7.0.15", "seed 7"):
        assert text in page


def test_the_words_of_the_gate_log_stay_whole(tmp_path: Path) -> None:
    """Every cell but the last is one that is never broken, and no rule lets a word of them be broken."""
    page = write_report(options(tmp_path), outcome(story())).read_text()
    log = page.partition("<h2>Gate log</h2>")[2].partition("</table>")[0]
    rows = [re.findall(r"<td([^>]*)>", row) for row in log.split("<tr>")[2:]]
    assert len(rows) >= 3
    assert {tuple(cells[:-1]) for cells in rows} == {(' class="time"', *[' class="short"'] * 5)}
    assert "td.short { white-space: nowrap; }" in page
    assert re.search(r"(?<!:last-child) \{ overflow-wrap: anywhere", page) is None


def test_what_came_from_outside_is_escaped(tmp_path: Path) -> None:
    evil = move(1, "admit", "drain", "operator_drain", epoch=9, note="<img src=x onerror=alert(1)>")
    page = write_report(options(tmp_path), outcome(story(gate_log=(evil,)))).read_text()
    assert "<img" not in page


def test_a_failed_row_shows_what_was_expected_and_seen(tmp_path: Path) -> None:
    page = write_report(options(tmp_path), outcome(story(firing=()))).read_text()
    assert "profile fast: failed" in page
    assert '<td class="bad">failed</td>' in page
    assert "fired: none" in page


def test_the_audit_log_is_one_json_line_a_record_in_order_of_time(tmp_path: Path) -> None:
    marked = story(timeline=timeline(marks=[Mark(AT_MS + 3000, "fault_on", "latency")]))
    page = write_report(options(tmp_path), outcome(marked))
    records = [json.loads(line) for line in (page.parent / AUDIT).read_text().splitlines()]
    assert [record["at_ms"] for record in records] == sorted(record["at_ms"] for record in records)
    counts = {log: sum(record["log"] == log for record in records) for log in ("gate", "journal", "drill")}
    assert counts == {"gate": 5, "journal": 18, "drill": 1}


def test_the_figures_bear_the_nine_names(tmp_path: Path) -> None:
    page = write_report(options(tmp_path), outcome(story()))
    figures = json.loads((page.parent / FIGURES).read_text())
    assert set(STABLE_FIELDS) <= set(figures["samples"][0])
    assert len(figures["samples"]) == len(story().timeline.samples)
    assert figures["drill"]["result"] == "passed"
    assert all(row["ok"] for row in figures["verdict"])


def test_two_drills_of_one_second_get_a_folder_each_and_latest_points_to_the_later(tmp_path: Path) -> None:
    first, second = (write_report(options(tmp_path), outcome(story())) for _ in range(2))
    assert [first.parent.name, second.parent.name] == ["20261129T150000Z", "20261129T150000Z-2"]
    assert (tmp_path / LATEST).resolve() == second.parent
    assert (tmp_path / LATEST / PICTURE).read_text().startswith("<svg")


def test_a_folder_named_latest_that_is_no_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / LATEST).mkdir()
    write_report(options(tmp_path), outcome(story()))
    assert not (tmp_path / LATEST).is_symlink()


def test_an_interrupted_drill_says_so(tmp_path: Path) -> None:
    stopped = replace(outcome(story(runs=())), interrupted=Interrupted(signal.SIGINT))
    page = write_report(options(tmp_path), stopped).read_text()
    assert "interrupted by SIGINT" in page
    assert stopped.exit_code == 130


def test_a_drill_that_saw_nothing_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no report"):
        write_report(options(tmp_path), replace(outcome(story()), evidence=None))
    assert list(tmp_path.iterdir()) == []


def test_a_queue_of_its_own_is_named_and_no_load_that_never_was(tmp_path: Path) -> None:
    refused = Said(AT_MS / 1000, "worker-1", "lease_lost", "j1", {"event": "lease_lost", "before": "call"})
    made = outcome(story(jobs_of_its_own=Jobs(20, "test-patch"), said=(refused,)))
    page = write_report(options(tmp_path), made)
    assert "A queue of 20 test-patch jobs" in page.read_text()
    assert "jobs/s" not in page.read_text()
    drill = json.loads((page.parent / FIGURES).read_text())["drill"]
    assert drill["jobs"] == {"count": 20, "job_class": "test-patch"}
    assert "rate_per_s" not in drill
    records = [json.loads(line) for line in (page.parent / AUDIT).read_text().splitlines()]
    assert [record["before"] for record in records if record["log"] == "worker"] == ["call"]
