"""Whatever comes from outside stays text: markup, line ends and templates in any field change nothing of the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from automation.callers import Caller
from automation.page.confirmation import Confirmation, Grounds, confirmation
from automation.page.deeds import Deed, Target
from automation.page.feed import State
from automation.page.run import run_panel
from automation.page.words import with_code
from sluicegate.gate_sentences import Said
from sluicegate.web.roles import Role
from tests.automation_parts import RUNBOOKS
from tests.html_tree import Element, parsed
from tests.page_parts import (
    HOSTILE,
    SETTINGS,
    TEMPLATES,
    entry,
    frames,
    history,
    job,
    move,
    reading,
    run_record,
    shown,
    static,
)
from tests.readings import EMPTY, live, with_gate

RUN = history(
    entry(4, "fix", "started", HOSTILE, actor=HOSTILE, detail=HOSTILE),
    entry(4, "fix", "paged", HOSTILE, actor=HOSTILE),
    actor=HOSTILE,
    reason=HOSTILE,
    trigger=HOSTILE,
    ended_by=HOSTILE,
    ended_why=HOSTILE,
    rollback_reason=HOSTILE,
    held_until=1,
    held_by=HOSTILE,
)
GATE = with_gate(
    EMPTY,
    drain_state="drain",
    reason=HOSTILE,
    actor=HOSTILE,
    pin="operator",
    pin_note=HOSTILE,
    decision=HOSTILE,
    decision_reason=HOSTILE,
    run=live("drain-and-recover"),
    besides=(replace(live(HOSTILE, HOSTILE), run_id=HOSTILE),),
)
EVERYTHING = reading(
    replace(GATE, queue=HOSTILE, unknown=1),
    RUN,
    jobs=(job(HOSTILE, **{"class": HOSTILE, "worker": HOSTILE, "attempt": HOSTILE}),),
    runs=(run_record(id=HOSTILE, actor=HOSTILE, reason=HOSTILE, runbook=HOSTILE, state=HOSTILE),),
    moves=(move(reason=HOSTILE, note=HOSTILE, actor=HOSTILE, pin=HOSTILE, to=HOSTILE, **{"from": HOSTILE}),),
)
SAFE = {
    "href",
    "id",
    "class",
    "aria-label",
    "aria-labelledby",
    "role",
    "tabindex",
    "datetime",
    "scope",
    "colspan",
    "aria-live",
}
SVG = {"viewbox", "preserveaspectratio", "points", "x", "y", "x1", "x2", "y1", "y2", "width", "height"}
PAGE = {"charset", "name", "content", "rel", "lang", "method", "action", "type", "value", "required", "maxlength"}
PAGE |= {"autocomplete", "for", "src", "defer", "readonly", "hidden"}


def check(part: Element) -> None:
    """Check that the text came through as it was and became nothing else."""
    for one in part.walk():
        assert one.tag != "img"
        strange = {name for name in one.attributes if not name.startswith("data-") and name != "aria-current"}
        assert strange <= SAFE | SVG | PAGE, strange
        assert one.attributes.get("href", "/").startswith(("/", "#")), one.attributes
    assert "49" not in part.text


@pytest.mark.parametrize("role", [Role.VIEW, Role.APPROVE])
@pytest.mark.parametrize("name", ["gate", "asked", "run", "verdicts", "jobs", "figures", "past"])
def test_every_part_keeps_what_it_is_told_as_text(name: str, role: Role) -> None:
    part = shown(EVERYTHING, role)[name]
    check(part)
    if name not in ("figures", "verdicts"):
        assert "<img src=x onerror=alert(1)>" in part.text
        assert "{{ 7 * 7 }}{% raw %}" in part.text


def page(template: str, **values: object) -> Element:
    caller = Caller(called=HOSTILE, role=Role.APPROVE)
    return parsed(TEMPLATES.render(template, caller=caller, queue=HOSTILE, **values))


def test_a_run_s_own_page_keeps_it_as_text() -> None:
    whole = replace(RUN, approvals={HOSTILE: HOSTILE})
    shown_page = page("run", it=run_panel(whole, RUNBOOKS, SETTINGS))
    check(shown_page)
    assert shown_page.text.count("<img src=x") > 10


def test_the_whole_page_keeps_an_outcome_and_a_failure_as_text() -> None:
    values = dict.fromkeys(("gate", "asked", "run", "verdicts", "jobs", "figures", "past"), "")
    said = Said(True, HOSTILE, HOSTILE)
    shown_page = page("page", parts=values, title=HOSTILE, at=HOSTILE, failed=HOSTILE, since=HOSTILE, outcome=said)
    check(shown_page)
    assert shown_page.text.count("<img src=x") > 5


HOSTILE_JOB = {"job": {"state": "unknown", "class": HOSTILE, "key": HOSTILE, "fence": "1"}, "payload": HOSTILE}


@pytest.mark.parametrize("deed", list(Deed))
def test_a_confirmation_keeps_its_address_its_job_and_what_was_typed_as_text(deed: Deed) -> None:
    target = Target(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    made = confirmation(deed, target, Grounds(EVERYTHING, RUNBOOKS, SETTINGS, HOSTILE_JOB))
    for one in (made, Confirmation(deed, target, HOSTILE, (HOSTILE,), (HOSTILE,), (HOSTILE,), "", "", HOSTILE)):
        words = {"label": HOSTILE, "token": HOSTILE, "actor": HOSTILE, "reason": HOSTILE, "error": HOSTILE}
        shown_page = page("confirm", it=one, address=f"/do/{deed}?job={HOSTILE}", **words)
        check(shown_page)
    assert shown_page.one("input", name="reason").attributes["value"] == HOSTILE.replace("\r\n", "\n") or (
        shown_page.one("input", name="reason").attributes["value"] == HOSTILE
    )


def test_no_field_ends_an_event_or_begins_another() -> None:
    _, made = frames()
    event = made.frame(State(1, EVERYTHING), Role.APPROVE).event(-1)
    name, data, *rest = event.decode().split("\n")
    assert (name, rest) == ("event: reading", ["", ""])
    assert "\r" not in data
    body = json.loads(data.removeprefix("data: "))
    assert set(body["parts"]) == {"gate", "asked", "run", "verdicts", "jobs", "figures", "past"}
    failed = made.frame(State(2, EVERYTHING, HOSTILE, 1), Role.APPROVE).event(1)
    assert failed.count(b"\n") == 3
    assert json.loads(failed.decode().split("\n")[1].removeprefix("data: "))["failed"] == HOSTILE


def parts_in(event: bytes) -> set[str]:
    """Give the names of the parts that an event holds."""
    return set(json.loads(event.decode().split("\n")[1].removeprefix("data: ")).get("parts", ()))


MOVED = reading(with_gate(EMPTY, drain_state="drain", admission_ratio=0.0))


def test_an_event_after_another_holds_what_has_changed_alone() -> None:
    _, made = frames()
    made.frame(State(1, reading()), Role.VIEW)
    frame = made.frame(State(2, MOVED), Role.VIEW)
    assert parts_in(frame.event(1)) == {"gate", "asked"}
    assert len(parts_in(frame.event(-1))) == 7
    assert len(parts_in(frame.event(0))) == 7, "whoever has missed one gets everything"


def test_after_an_outage_everybody_gets_everything() -> None:
    """A page that opened its stream meanwhile shows what was before it: what has not changed since is news to it."""
    _, made = frames()
    made.frame(State(1, reading()), Role.VIEW)
    made.frame(State(2, MOVED), Role.VIEW)
    assert parts_in(made.frame(State(3, MOVED, "it is away", 1), Role.VIEW).event(-1)) == set()
    assert len(parts_in(made.frame(State(4, MOVED), Role.VIEW).event(3))) == 7


def test_a_command_in_backticks_is_marked_and_its_content_stays_text() -> None:
    assert str(with_code("see `a <b>` and <c>")) == "see <code>a &lt;b&gt;</code> and &lt;c&gt;"
    assert str(with_code("one ` alone")) == "one ` alone"


def test_templates_and_files_hold_nothing_that_the_policy_forbids_and_no_address_elsewhere() -> None:
    folder = static("x").parents[1]
    for template in (folder / "templates").rglob("*.j2"):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), template
        assert not re.search(r"\s(style|on[a-z]+)=", text), template
        assert not re.search(r"\|\s*safe\b", text), template
        assert "<style" not in text, template
        assert "://" not in text, template
    for name in ("page.css", "page.js"):
        assert "://" not in static(name).read_text(encoding="utf-8")
    assert "eval(" not in static("page.js").read_text(encoding="utf-8")
