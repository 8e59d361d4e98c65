"""Build the request that tells one receiver of one notice. Pure; each shape is the receiver's own documented one.

Slack: incoming webhooks (docs.slack.dev/messaging/sending-messages-using-incoming-webhooks). PagerDuty: Events API v2
(developer.pagerduty.com/docs/send-alert-event). GitHub: REST, issues (docs.github.com/rest/issues).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from automation.notices.words import NEEDS_PERSON, OVER, command, detail, facts, title
from sluicegate.notice import Notice, NoticeKind

PAGERDUTY = "https://events.pagerduty.com"
GITHUB = "https://api.github.com"
MARK = "<!-- {key} -->"
LABEL = "sluicegate"


@dataclass(frozen=True, slots=True)
class Ask:
    """Hold one HTTP request; `body` goes as JSON."""

    method: str
    url: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def webhook(notice: Notice, url: str, token: str) -> Ask:
    """Tell any webhook: the notice's fields, with its key in the body and as Idempotency-Key."""
    body = {
        "version": 1,
        "key": notice.key,
        "at": _iso(notice),
        **facts(notice),
        "title": title(notice),
        "detail": detail(notice),
        "command": command(notice),
        "needs_person": notice.kind in NEEDS_PERSON,
    }
    headers = {"Idempotency-Key": notice.key, **({"Authorization": f"Bearer {token}"} if token else {})}
    return Ask("POST", url, body, headers)


def slack(notice: Notice, url: str) -> Ask:
    """Tell a Slack-compatible incoming webhook; what came from outside is no markup, no link and no mention there."""
    lines = [line for line in (title(notice), detail(notice), command(notice)) if line]
    blocks = [{"type": "section", "text": {"type": "plain_text", "text": line, "emoji": False}} for line in lines]
    # What is shown where blocks are not, as in a notification, is read as markup.
    return Ask("POST", url, {"text": _slack_text(title(notice)), "blocks": blocks})


def pagerduty(notice: Notice, url: str, routing_key: str) -> Ask | None:
    """Trigger or resolve the incident that a notice belongs to; None for what wakes nobody."""
    if notice.kind in OVER:
        event: dict[str, Any] = {"event_action": "resolve"}
    elif notice.kind in NEEDS_PERSON:
        payload = {
            "summary": title(notice),
            "source": f"sluicegate/{notice.queue}",
            "severity": "critical" if notice.kind is not NoticeKind.UNKNOWN_RISING else "warning",
            "timestamp": _iso(notice),
            "component": notice.queue,
            "custom_details": {**facts(notice), "detail": detail(notice), "command": command(notice)},
        }
        event = {"event_action": "trigger", "payload": payload}
    else:
        return None
    dedup_key = f"sluicegate/{notice.queue}/{_incident(notice)}"[:255]
    return Ask(
        "POST",
        f"{url or PAGERDUTY}/v2/enqueue",
        {"routing_key": routing_key, "dedup_key": dedup_key, "client": "Sluicegate", **event},
    )


def _incident(notice: Notice) -> str:
    """Name what a person comes for: what joins an open incident wakes nobody again, so each has one of its own."""
    match notice.kind:
        case NoticeKind.UNKNOWN_RISING:
            return "unknown"
        case NoticeKind.BLOCKED_RISING:
            return "blocked"
        # A rollback pins the gate, and whoever releases it names no run.
        case NoticeKind.ROLLED_BACK | NoticeKind.PINNED | NoticeKind.STILL_PINNED | NoticeKind.RELEASED:
            return "gate"
        case _:
            return notice.run


def github_search(notice: Notice, url: str, repo: str, token: str) -> Ask:
    """Ask for the issue of a notice's run, whatever became of it."""
    labels = f"{LABEL},{github_label(notice)}"
    return Ask("GET", f"{url or GITHUB}/repos/{repo}/issues?state=all&labels={labels}", None, _github_headers(token))


def github_comments(notice: Notice, number: int, url: str, repo: str, token: str) -> Ask:
    """Ask for the comments of an issue since a notice was written: GitHub gives the oldest first, a hundred at most."""
    # Its clock need not agree with Redis'.
    since = datetime.fromtimestamp(notice.at_ms / 1000, UTC) - timedelta(hours=1)
    place = f"{url or GITHUB}/repos/{repo}/issues/{number}/comments"
    return Ask("GET", f"{place}?per_page=100&since={since:%Y-%m-%dT%H:%M:%SZ}", None, _github_headers(token))


def github_open(notice: Notice, url: str, repo: str, token: str) -> Ask:
    """Open the issue of a run, or of the queue where there is none."""
    body = {"title": title(notice), "body": _github_body(notice), "labels": [LABEL, github_label(notice)]}
    return Ask("POST", f"{url or GITHUB}/repos/{repo}/issues", body, _github_headers(token))


def github_comment(notice: Notice, number: int, url: str, repo: str, token: str) -> Ask:
    """Say more under an issue."""
    place = f"{url or GITHUB}/repos/{repo}/issues/{number}/comments"
    return Ask("POST", place, {"body": _github_body(notice)}, _github_headers(token))


def github_label(notice: Notice) -> str:
    """Name the label that all notices of a run share: at most 50 characters, GitHub's limit."""
    return f"{notice.queue}:{notice.run or 'gate'}"[-50:]


def mark_of(notice: Notice) -> str:
    """Give the invisible line by which a notice is known again."""
    return MARK.format(key=notice.key)


def _github_body(notice: Notice) -> str:
    """Put what came from outside into a block where nothing is markup or a mention."""
    rows = [f"{name}: {value}" for name, value in facts(notice).items()]
    rows += [line for line in (detail(notice), command(notice)) if line]
    fenced = "\n".join(rows).replace("```", "'''")
    return f"{mark_of(notice)}\n```text\n{fenced}\n```\n"


def _github_headers(token: str) -> dict[str, str]:
    return {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }


def _slack_text(text: str) -> str:
    """Escape the three characters that Slack reads as markup of its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _iso(notice: Notice) -> str:
    return datetime.fromtimestamp(notice.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
