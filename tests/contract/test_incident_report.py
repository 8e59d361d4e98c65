"""The report of a run holds what happened, who did it and why, and lets no text of anybody else be markup."""

from __future__ import annotations

import asyncio
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from automation.incident.gathering import AlertSpan, Incident, Recorded, gather
from automation.incident.rendering import markdown, page
from automation.incident.words import summary, tables, title
from sluicegate.__main__ import dispatch
from sluicegate.errors import PrometheusFailed
from sluicegate.job import Outcome
from sluicegate.prometheus import Prometheus
from sluicegate.settings import Settings
from tests.automation_parts import Parts, quick

HOSTILE = (
    '<script>alert(1)</script> & "x" {{ 7*7 }} | `rm` [a](http://b) _it_ *b* ~~s~~ ![i](j) https://evil.example '
    "www.evil.example a_name\r\n# no heading"
)


class Tags(HTMLParser):
    """Collect the tags of a page and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


def told(redis_url: str, settings: Settings, run_reason: str) -> Incident:
    """Live through a recovery that a person approves and that ends, and gather it."""

    async def scenario() -> Incident:
        async with Parts(redis_url, settings) as parts:
            parts.submit(3)
            parts.store.order("reject", "ada", run_reason)
            run = parts.open_run()
            await parts.until_step(run, "fix")
            parts.store.approve(run, "fix", actor="bob", reason=run_reason)
            await parts.until_ended(run, "succeeded")
            history = parts.store.run(run)
            assert history is not None
            return gather(parts.store, parts.settings, history, None)

    return asyncio.run(scenario())


def test_it_says_what_happened_who_did_it_and_why(redis_url: str, tmp_path: Path) -> None:
    incident = told(redis_url, quick(tmp_path), "the provider is down")
    assert title(incident) == "drain-and-recover on default: succeeded"
    who = {(actor, what) for _, actor, what in incident.persons}
    assert ("ada", "operator_reject: the provider is down") in who
    assert ("bob", "approved fix: the provider is down") in who
    by_heading = {table.heading: table.rows for table in tables(incident)}
    reasons = [row[3] for row in by_heading["The gate's moves"]]
    assert [one for one in reasons if one.startswith("run_")] == [
        "run_opened",
        "run_recover",
        "run_reopen",
        "run_ramp",
        "run_succeeded",
    ]
    steps = [row[1] for row in by_heading["The run's journal"] if row[2] == "done"]
    assert steps[0] == "1 freeze"
    text = markdown(incident)
    assert "## Who did what" in text
    assert "bob" in text


def test_the_page_stands_for_itself_and_draws_gate_and_steps(redis_url: str, tmp_path: Path) -> None:
    incident = told(redis_url, quick(tmp_path), "because")
    html = page(incident)
    seen = read(html)
    assert "script" not in seen.tags
    assert seen.links == []
    assert "default-src 'none'" in html
    svg = ET.fromstring(re.search(r"<svg.*</svg>", html, re.S)[0])  # type: ignore[index]  # noqa: S314  # our own page
    drawn = "".join(svg.itertext())
    for word in ("gate", "steps", "drain", "recovering", "admit", "freeze"):
        assert word in drawn


def test_text_of_anybody_else_stays_text(redis_url: str, tmp_path: Path) -> None:
    incident = told(redis_url, quick(tmp_path), HOSTILE)
    html = page(replace(incident, recorded=Recorded(missing=(HOSTILE,), replay=(HOSTILE,))))
    seen = read(html)
    assert "script" not in seen.tags
    assert seen.text.count("<script>alert(1)</script>") >= 4
    assert seen.text.count("{{ 7*7 }}") >= 4, "no template of anybody else is filled in"
    text = markdown(incident)
    assert "<script>" not in text
    assert "[a](http" not in text
    read_as = {
        token.type for block in MarkdownIt("commonmark").enable("table").parse(text) for token in block.children or ()
    }
    assert read_as == {"text", "strong_open", "strong_close"}, "only the names of the facts are strong"
    assert not re.search(r"(?<!\\)(://|www\.)", text), "forges make links of these"
    assert "a_name" in text
    rows = [line for line in text.splitlines() if "script" in line and line.startswith("|")]
    assert rows
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (4, 6, 8) for row in rows), "no cell leaves its column"


def test_jobs_that_ended_and_how_unknown_ones_were_settled_are_counted(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> Incident:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            parts.submit(2)
            jobs = parts.store.claim("w1", "r1", 2).jobs
            for number, job in enumerate(jobs):
                outcome = (Outcome.UNKNOWN, Outcome.FAILED)[number]
                settlement = {"worker": "w1", "id": job.job_id, "fence": str(job.fence), "request": f"s{number}"}
                parts.store.settle({**settlement, "outcome": outcome.value, "cause": "bad answer"})
            parts.store.reconcile(jobs[0].job_id, "succeeded", actor="ann", reason="asked them", source="person")
            run = parts.open_run()
            parts.store.order("abort", "ann", "enough")
            await parts.until_ended(run, "rolled_back")
            history = parts.store.run(run)
            assert history is not None
            return gather(parts.store, parts.settings, history, None)

    incident = asyncio.run(scenario())
    by_heading = {table.heading: table.rows for table in tables(incident)}
    assert by_heading["Jobs that expired or failed"] == (("lint-fix", "failed", "bad answer", "1"),)
    ((_, job, *told),) = by_heading["Unknown jobs and late writes"]
    assert told == ["settled by reconciliation", "succeeded", "person, ann", "asked them"]
    assert job in {what.split()[1].removesuffix(":") for _, _, what in incident.persons if what.startswith("succeeded")}
    assert dict(summary(incident))["jobs without an end"].startswith("0 unknown, 0 blocked")
    assert any(what.startswith("succeeded") and "asked them" in what for _, _, what in incident.persons)
    assert title(incident).endswith("rolled back: manual_operator_hold")


def test_what_a_prometheus_recorded_is_drawn_and_listed(redis_url: str, tmp_path: Path) -> None:
    incident = told(redis_url, quick(tmp_path), "because")
    at = incident.from_ms
    recorded = Recorded(
        {"queue_age_p95_seconds": ((at, 1.0), (at + 1000, 30.0)), "provider_5xx_rate": ((at, None), (at + 5, 0.4))},
        3,
        (AlertSpan("SluicegateQueueAgeCritical", at + 2000, at + 9000),),
        ("replayed",),
    )
    html = page(replace(incident, recorded=recorded))
    assert "age of the ready jobs, s" in html
    assert "provider: 5xx and timeouts" in html
    assert "QueueAgeCritical" in html
    assert "a point a move" not in html
    text = markdown(replace(incident, recorded=recorded))
    assert "replayed" in text
    assert "- **jobs put back by drains**: 3" in text
    assert "put back by drains" not in markdown(incident), "without a Prometheus nobody counted them"


def test_a_prometheus_that_does_not_answer_fails_nothing(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> Incident:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            run = parts.open_run()
            history = parts.store.run(run)
            assert history is not None
            with pytest.raises(PrometheusFailed):
                Prometheus("http://127.0.0.1:9", within_s=1).at("up", 1000)
            return gather(parts.store, parts.settings, history, Prometheus("http://127.0.0.1:9", within_s=1))

    incident = asyncio.run(scenario())
    assert incident.recorded.figures == {}
    assert any("can't be reached" in said for said in incident.recorded.missing)
    assert "can't be reached" in read(page(incident)).text


def test_the_command_writes_both_files_and_refuses_a_run_that_is_not_there(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    incident = told(redis_url, quick(tmp_path), "because")
    run = incident.history.run.run_id
    out = tmp_path / "incidents"
    assert dispatch(["automation", "report", run, "--redis-url", redis_url, "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [f"{run}.html", f"{run}.md"]
    assert run in (out / f"{run}.html").read_text()
    capsys.readouterr()
    assert dispatch(["automation", "report", "no-such-run", "--redis-url", redis_url, "--out", str(out)]) == 1
    assert "There is no run no-such-run" in capsys.readouterr().err
