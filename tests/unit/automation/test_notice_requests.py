"""What a receiver is asked is its own documented shape, and what came from outside stays text in it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from automation.notices.receivers import (
    github_comment,
    github_comments,
    github_label,
    github_open,
    github_search,
    mark_of,
    pagerduty,
    slack,
    webhook,
)
from automation.notices.words import NEEDS_PERSON, OVER, command, detail, facts, one_line, title
from sluicegate.notice import Notice, NoticeKind

HELD = Notice(
    queue="repairs",
    notice_id="17960-3",
    at_ms=1_796_009_526_221,
    kind=NoticeKind.HOLDING,
    run="20261130T033237-0600",
    runbook="drain-and-recover",
    actor="executor:host:1:aa",
    state="fix",
    text="waits for a named person",
)
NASTY = "<!channel> & <@U1|x> {{ 7*7 }}\r\nBcc: all `rm` ``` @everyone <script> *b* _i_ ~s~ #general http://x"


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_kind_has_words_of_one_line(kind: NoticeKind) -> None:
    notice = replace(HELD, kind=kind, text=NASTY, reason=NASTY, actor=NASTY, state=NASTY)
    for said in (title(notice), detail(notice), command(notice), *facts(notice).values()):
        assert said.isprintable()
        assert len(said) <= 400
    assert title(notice).startswith("[repairs] ")
    assert bool(command(notice)) is (kind in NEEDS_PERSON)


def test_long_text_is_cut_and_says_so() -> None:
    assert one_line("x" * 500) == "x" * 399 + "…"
    assert one_line("a\x00\t b\n\nc") == "a b c"


def test_a_webhook_gets_every_field_and_the_key_twice() -> None:
    ask = webhook(HELD, "https://example.test/hook", "s3cret")
    assert ask.body is not None
    assert ask.headers == {"Idempotency-Key": "sluicegate/repairs/17960-3", "Authorization": "Bearer s3cret"}
    assert ask.body["key"] == "sluicegate/repairs/17960-3"
    assert ask.body["at"] == "2026-11-30T03:32:06.221+00:00"
    assert (ask.body["kind"], ask.body["run"], ask.body["needs_person"]) == ("holding", HELD.run, True)
    assert ask.body["command"] == f"sluicegate automation show {HELD.run} --queue repairs"
    assert "Authorization" not in webhook(HELD, "https://example.test/hook", "").headers


def test_slack_reads_no_markup_of_anybody_else() -> None:
    ask = slack(replace(HELD, text=NASTY), "https://hooks.example.test/x")
    assert ask.body is not None
    assert {block["text"]["type"] for block in ask.body["blocks"]} == {"plain_text"}, "it reads nothing in such a text"
    said = [block["text"]["text"] for block in ask.body["blocks"]]
    assert said == [title(HELD), detail(replace(HELD, text=NASTY)), command(HELD)]
    shown_elsewhere = slack(replace(HELD, kind=NoticeKind.PINNED, reason=NASTY), "https://hooks.example.test/x")
    assert shown_elsewhere.body is not None
    assert "&lt;!channel&gt; &amp; &lt;@U1|x&gt; {{ 7*7 }} Bcc: all" in shown_elsewhere.body["text"]


def incident(kind: NoticeKind, run: str = "") -> tuple[str, str]:
    """Give which incident a notice belongs to, and what becomes of it."""
    ask = pagerduty(replace(HELD, kind=kind, run=run), "", "key")
    assert ask is not None
    assert ask.body is not None
    return ask.body["dedup_key"].removeprefix("sluicegate/repairs/"), ask.body["event_action"]


def test_a_run_that_waits_is_an_incident_until_it_ends() -> None:
    opened = pagerduty(HELD, "", "key")
    assert opened is not None
    assert opened.url == "https://events.pagerduty.com/v2/enqueue"
    assert opened.body is not None
    assert opened.body["payload"]["severity"] == "critical"
    assert incident(NoticeKind.HOLDING, "r-1") == ("r-1", "trigger")
    assert incident(NoticeKind.REOPENED, "r-1") == incident(NoticeKind.ENDED, "r-1") == ("r-1", "resolve")


def test_a_rollback_and_its_pin_are_one_incident_that_ends_with_the_pin() -> None:
    """Whoever releases a pin names no run."""
    assert incident(NoticeKind.ROLLED_BACK, "r-1") == incident(NoticeKind.PINNED, "r-1") == ("gate", "trigger")
    assert incident(NoticeKind.STILL_PINNED) == ("gate", "trigger")
    assert incident(NoticeKind.RELEASED) == ("gate", "resolve")


def test_what_is_open_for_unknown_jobs_keeps_no_pin_from_waking_anybody() -> None:
    """What joins an open incident wakes nobody again."""
    assert incident(NoticeKind.UNKNOWN_RISING) == ("unknown", "trigger")
    assert incident(NoticeKind.BLOCKED_RISING) == ("blocked", "trigger")


def test_pagerduty_wakes_nobody_for_what_needs_nobody() -> None:
    for kind in NoticeKind:
        asked = pagerduty(replace(HELD, kind=kind), "", "key")
        assert (asked is not None) is (kind in NEEDS_PERSON | OVER)


def test_github_text_is_in_a_block_that_it_cannot_leave() -> None:
    ask = github_open(replace(HELD, text=NASTY), "", "acme/queues", "t")
    assert ask.body is not None
    body = ask.body["body"]
    assert body.startswith("<!-- sluicegate/repairs/17960-3 -->\n```text\n")
    assert body.count("```") == 2
    assert ask.body["labels"] == ["sluicegate", github_label(HELD)]
    assert ask.headers["Authorization"] == "Bearer t"
    assert mark_of(HELD) in github_comment(HELD, 7, "", "acme/queues", "t").body["body"]  # type: ignore[index]  # it has one


def test_a_label_is_no_longer_than_github_takes() -> None:
    assert len(github_label(replace(HELD, queue="q" * 90))) == 50
    assert github_label(replace(HELD, run="")) == "repairs:gate"
    assert github_search(HELD, "", "acme/queues", "t").url.endswith(f"labels=sluicegate,{github_label(HELD)}")


def test_github_is_asked_for_the_comments_that_may_hold_a_notice() -> None:
    """It gives the oldest first, a hundred at most, and a queue's issue has more of them one day."""
    ask = github_comments(HELD, 7, "", "acme/queues", "t")
    assert ask.url.endswith("/issues/7/comments?per_page=100&since=2026-11-30T02:32:06Z"), "an hour before it"


@pytest.mark.parametrize(
    "body", [{}, {"id": "1-0", "at": "now", "kind": "started"}, {"id": "1-0", "at": "1", "kind": "shout"}]
)
def test_what_somebody_else_wrote_is_no_notice(body: dict[str, str]) -> None:
    assert Notice.of("repairs", body) is None


def test_a_notice_is_read_as_it_was_written() -> None:
    body = json.loads('{"id":"1-0","at":"5","kind":"pinned","reason":"operator","state":"drain"}')
    assert Notice.of("repairs", body) == Notice(
        "repairs", "1-0", 5, NoticeKind.PINNED, reason="operator", state="drain"
    )
