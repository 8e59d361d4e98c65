"""Render what is live once for everybody of a role, and say as server-sent events what has changed since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from automation.page.asked import asked
from automation.page.evidence import PageEvidence
from automation.page.feed import Feed, State
from automation.page.figures import cards, damage
from automation.page.gate import gate_panel
from automation.page.jobs import jobs_panel
from automation.page.reading import Reading
from automation.page.run import run_panel, verdicts
from automation.page.templates import Templates
from automation.page.words import clock
from runbooks.model import Runbook
from sluicegate.settings import Settings
from sluicegate.web.roles import Role

# The parts of the page that change by themselves, in their order on it; each is swapped as a whole.
PARTS = ("gate", "asked", "run", "verdicts", "jobs", "figures", "past")
# Eyes follow no faster, and the plots are most of what is sent.
_FIGURES_EVERY_MS = 1_000


@dataclass(frozen=True, slots=True)
class Frame:
    """Hold one state as everybody of a role sees it: its parts, its title, and the event since another frame.

    `is_reading` is False where the queue could not be read. Such an event holds no parts, so nobody knows what its
    watchers have seen, and the next one holds everything.
    """

    version: int
    is_reading: bool
    parts: Mapping[str, str]
    title: str
    whole: bytes
    since: Mapping[int, bytes]

    def event(self, seen: int) -> bytes:
        """Give the event for somebody who has seen the frame of this version, -1 for none."""
        return self.since.get(seen, self.whole)


class Frames:
    """Keep the newest frame of each role."""

    def __init__(
        self,
        feed: Feed,
        templates: Templates,
        runbooks: Mapping[str, Runbook],
        settings: Settings,
        evidence: PageEvidence,
    ) -> None:
        self._feed = feed
        self._templates = templates
        self._runbooks = runbooks
        self._settings = settings
        self._evidence = evidence
        self._kept: dict[Role, Frame] = {}
        self._figures: tuple[int, str] = (-_FIGURES_EVERY_MS, "")

    def frame(self, state: State, role: Role) -> Frame:
        """Give the frame of a state."""
        kept = self._kept.get(role)
        if kept is not None and kept.version == state.version:
            return kept
        made = self._frame(state, role, kept)
        self._kept[role] = made
        return made

    def _frame(self, state: State, role: Role, before: Frame | None) -> Frame:
        if state.reading is None or state.failed:
            failed = state.failed or "It was not read yet."
            event = _event("unread", {"failed": failed, "since": clock(state.since_ms), "build": self._templates.build})
            return Frame(state.version, False, before.parts if before is not None else {}, "unreadable", event, {})
        parts = self.parts(state.reading, role)
        panel = gate_panel(state.reading)
        body: dict[str, object] = {
            "now_ms": state.reading.telemetry.at_ms,
            "at": clock(state.reading.telemetry.at_ms),
            "build": self._templates.build,
            "said": panel.summary,
            "title": f"{panel.state} · {panel.queue}",
        }
        since = {}
        if before is not None and before.is_reading:
            changed = {name: html for name, html in parts.items() if before.parts.get(name) != html}
            since[before.version] = _event("reading", {**body, "parts": changed})
        whole = _event("reading", {**body, "parts": parts})
        return Frame(state.version, True, parts, str(body["title"]), whole, since)

    def parts(self, reading: Reading, role: Role) -> dict[str, str]:
        """Render every part of a reading."""
        history = reading.history
        known = self._runbooks, self._settings
        values = {
            "gate": gate_panel(reading),
            "asked": asked(reading),
            "run": run_panel(history, *known) if history is not None else None,
            "verdicts": verdicts(reading, *known, self._evidence.samples),
            "jobs": jobs_panel(reading),
            "past": reading,
        }
        figures = self._figures_of(reading)
        return {
            name: figures
            if name == "figures"
            else self._templates.render(f"parts/{name}", it=values[name], role=role, reading=reading)
            for name in PARTS
        }

    def _figures_of(self, reading: Reading) -> str:
        at_ms, html = self._figures
        now_ms = reading.telemetry.at_ms
        if html and 0 <= now_ms - at_ms < _FIGURES_EVERY_MS:
            return html
        samples = self._feed.samples
        shown = cards(reading.telemetry, list(samples), samples.span_s)
        html = self._templates.render("parts/figures", it=shown, damage=damage(reading.telemetry))
        self._figures = (now_ms, html)
        return html


def _event(name: str, body: Mapping[str, object]) -> bytes:
    """Write one event. JSON keeps every line end inside its one line: no field can end the event or begin another."""
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
