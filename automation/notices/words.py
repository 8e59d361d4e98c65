"""Put a notice into words. Pure; what came from outside stays text on one line."""

from __future__ import annotations

from sluicegate.notice import Notice, NoticeKind
from sluicegate.printable import words_of

_MOST = 400
_TITLES = {
    NoticeKind.STARTED: "Run {run} was opened",
    NoticeKind.HOLDING: "Run {run} waits for a person",
    NoticeKind.ROLLED_BACK: "Run {run} rolled back: the gate is closed and pinned",
    NoticeKind.REOPENED: "Run {run} ended: the gate is open",
    NoticeKind.ENDED: "Run {run} ended: {state}",
    NoticeKind.PINNED: "The gate is pinned: {reason}",
    NoticeKind.STILL_PINNED: "The gate is still pinned: {reason}",
    NoticeKind.RELEASED: "The pin is gone: {reason}",
    NoticeKind.SAID: "Run {run} says",
    NoticeKind.UNKNOWN_RISING: "{state} jobs are unknown",
    NoticeKind.BLOCKED_RISING: "{state} jobs are blocked",
}
# What a person can do about it; what needs nobody has none.
_COMMANDS = {
    NoticeKind.HOLDING: "sluicegate automation show {run}",
    NoticeKind.ROLLED_BACK: "sluicegate automation show {run}",
    NoticeKind.PINNED: "sluicegate gate show",
    NoticeKind.STILL_PINNED: "sluicegate gate show",
    NoticeKind.UNKNOWN_RISING: "sluicegate queue unknown",
    NoticeKind.BLOCKED_RISING: "sluicegate queue blocked",
}
# Someone has to come for these.
NEEDS_PERSON = frozenset(_COMMANDS)
# And these say that it is over.
OVER = frozenset({NoticeKind.REOPENED, NoticeKind.ENDED, NoticeKind.RELEASED})


def one_line(text: str) -> str:
    """Give a text without line breaks or control characters, at most 400 characters long."""
    kept = words_of(text)
    return kept if len(kept) <= _MOST else f"{kept[: _MOST - 1]}…"


def title(notice: Notice) -> str:
    """Say it in one line, the queue first."""
    said = _TITLES[notice.kind].format(run=notice.run, state=notice.state, reason=notice.reason)
    return one_line(f"[{notice.queue}] {said}")


def detail(notice: Notice) -> str:
    """Say why, and by whom; empty where nothing is known."""
    said = one_line(notice.text)
    by = f"by {one_line(notice.actor)}" if notice.actor else ""
    return ", ".join(part for part in (said, by) if part)


def command(notice: Notice) -> str:
    """Give the command that shows more to whoever has to come; empty where nobody has."""
    named = f" --queue {notice.queue}"
    form = _COMMANDS.get(notice.kind, "")
    return one_line(form.format(run=notice.run) + named) if form else ""


def facts(notice: Notice) -> dict[str, str]:
    """Give every field that is known, one line each."""
    known = {
        "queue": notice.queue,
        "kind": notice.kind.value,
        "run": notice.run,
        "runbook": notice.runbook,
        "actor": notice.actor,
        "reason": notice.reason,
        "state": notice.state,
    }
    return {name: one_line(value) for name, value in known.items() if value}
