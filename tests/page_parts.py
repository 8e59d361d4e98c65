"""The page's parts from hand-made readings, without a queue; and what comes from outside and must stay text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from automation.page.evidence import PageEvidence
from automation.page.feed import Feed
from automation.page.frames import Frames
from automation.page.reading import JobLine, Reading
from automation.page.samples import Sample
from automation.page.templates import Templates
from sluicegate.replies import GateLogEntry
from sluicegate.run_replies import JournalEntry, RunHistory, RunRecord
from sluicegate.service_settings import PageSettings
from sluicegate.settings import default_settings
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry
from sluicegate.web.roles import Role
from tests.automation_parts import RECOVERY, RUNBOOKS
from tests.html_tree import Element, parsed
from tests.readings import AT_MS, EMPTY

TEMPLATES = Templates()
SETTINGS = default_settings()
# Markup, an event's end, a template, a quote that closes an attribute, and what turns a line round.
HOSTILE = (
    "<img src=x onerror=alert(1)>\r\n\r\nevent: reading\rdata: {}\n{{ 7 * 7 }}{% raw %}\" autofocus='x' \u202e`</code>`"
)


def run_record(**changes: Any) -> RunRecord:
    """Give a live recovery that stands at `fix`."""
    body = {
        "id": "run-1",
        "runbook": RECOVERY.name,
        "state": "running",
        "step": 4,
        "verb": "fix",
        "trigger": "webhook",
        "actor": "alertmanager",
        "reason": "alert QueueAgeHigh",
        "digest": RECOVERY.digest,
        "started_at": AT_MS - 90_000,
    }
    return RunRecord.of(body | changes)


def entry(seq: int, verb: str, phase: str, text: str = "", ago_s: float = 10, **changes: Any) -> JournalEntry:
    """Give a journal entry from `ago_s` seconds ago."""
    body = {"id": f"{seq}-{phase}", "at": AT_MS - ago_s * 1000, "seq": seq, "verb": verb, "phase": phase}
    return JournalEntry.of(body | {"actor": "executor:1", "text": text, "detail": "{}"} | changes)


def history(*entries: JournalEntry, **changes: Any) -> RunHistory:
    return RunHistory(run_record(**changes), entries, {})


def waiting(why: str = "waits for a named person") -> RunHistory:
    """Give a run that waits for a person at `fix`."""
    done = [
        entry(seq, verb, phase)
        for seq, verb in ((1, "freeze"), (2, "snapshot"), (3, "drain"))
        for phase in ("started", "done")
    ]
    return history(
        *done, entry(4, "fix", "started", "wait until a named person approves"), entry(4, "fix", "paged", why)
    )


def move(**changes: Any) -> GateLogEntry:
    body = {"id": "1-1", "at": AT_MS - 60_000, "from": "admit", "to": "drain", "reason": "provider_or_queue_age"}
    body |= {"actor": "controller:1", "epoch": EMPTY.gate.epoch, "pin": "", "run": "", "note": "", "figures": "{}"}
    return GateLogEntry.of(body | changes)


def job(job_id: str, state: str = "unknown", **record: str) -> JobLine:
    body = {"state": state, "class": "lint-fix", "attempt": "1", "worker": "w1", "fence": "17", "key": job_id}
    return JobLine(job_id, state, AT_MS - 5_000, body | record)


def reading(telemetry: Telemetry = EMPTY, run: RunHistory | None = None, **changes: Any) -> Reading:
    body: dict[str, Any] = {"besides": (), "jobs": (), "runs": (), "moves": (), "lists_at_ms": telemetry.at_ms}
    return Reading(telemetry, run, **(body | changes))


def frames() -> tuple[Feed, Frames]:
    """Give a feed that reads nothing by itself, and what renders it."""
    feed = Feed(Store.connect("redis://127.0.0.1:1/0"), PageSettings())
    return feed, Frames(feed, TEMPLATES, RUNBOOKS, SETTINGS, PageEvidence(feed, RUNBOOKS, SETTINGS))


def shown(of: Reading, role: Role = Role.APPROVE) -> dict[str, Element]:
    """Render every part of a reading, and parse it."""
    feed, made = frames()
    feed.samples.add(Sample.of(of.telemetry))
    return {name: parsed(html) for name, html in made.parts(of, role).items()}


def offered(part: Element) -> list[str]:
    """Give the addresses of the deeds that a part offers."""
    return [link.attributes["href"] for link in part.all("a", class_="button")]


def static(name: str) -> Path:
    return Path(__file__).parents[1] / "automation" / "page" / "static" / name
