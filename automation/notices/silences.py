"""Silence what a planned run makes by itself, in Alertmanager, and take it away again when the run is over.

The requests are those of Alertmanager's API v2 (github.com/prometheus/alertmanager, api/v2/openapi.yaml). A silence
names its run in its comment, so whoever takes it away needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from automation.notices.receivers import Ask
from automation.notices.words import one_line
from sluicegate.errors import SluicegateError
from sluicegate.records import AlertName

# A closed gate lets the queue age and the slack shrink. Nothing else is silenced: not what the provider does, not a pin
# or a duplicate, and never what watches the executor, the controller or the figures.
SILENCED: tuple[AlertName, ...] = (
    AlertName.QUEUE_AGE_HIGH,
    AlertName.QUEUE_AGE_CRITICAL,
    AlertName.DEADLINE_SLACK_LOW,
    AlertName.DEADLINE_BREACH_FORECAST,
    AlertName.NEW_WORK_WILL_MISS,
    AlertName.RECOVERY_HOLD,
)
_BY = "sluicegate"
_WITHIN_S = 5.0


def asked_for(url: str, queue: str, run: str, said: str, lasts_s: float, now: datetime) -> Ask:
    """Build the request that makes a silence; it ends by itself after `lasts_s`, whoever forgets it."""
    body = {
        "matchers": [
            {"name": "queue", "value": queue, "isRegex": False, "isEqual": True},
            {"name": "alertname", "value": "|".join(SILENCED), "isRegex": True, "isEqual": True},
        ],
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(seconds=lasts_s)).isoformat(),
        "createdBy": _BY,
        "comment": _comment(run) + one_line(said),
    }
    return Ask("POST", f"{url.rstrip('/')}/api/v2/silences", body)


def listed(url: str) -> Ask:
    """Ask for every silence."""
    return Ask("GET", f"{url.rstrip('/')}/api/v2/silences")


def removed(url: str, silence: str) -> Ask:
    """Build the request that ends one."""
    return Ask("DELETE", f"{url.rstrip('/')}/api/v2/silence/{silence}")


def of_run(silences: Sequence[Mapping[str, Any]], run: str) -> tuple[str, ...]:
    """Give the ids of a run's silences that are not over yet."""
    return tuple(
        str(one["id"])
        for one in silences
        if one.get("createdBy") == _BY
        and str(one.get("comment", "")).startswith(_comment(run))
        and isinstance(one.get("status"), Mapping)
        and one["status"].get("state") != "expired"
    )


def _comment(run: str) -> str:
    return f"run {run}: "


class Silenced:
    """Make one run's silence, and take it away where the run was not opened; raises SluicegateError."""

    def __init__(self, url: str, queue: str, run: str) -> None:
        self._url = url
        self._queue = queue
        self._run = run
        self._silence = ""

    def make(self, said: str, lasts_s: float) -> str:
        """Make it, and give its id."""
        answer = self._ask(asked_for(self._url, self._queue, self._run, said, lasts_s, datetime.now(UTC)))
        self._silence = str(answer.get("silenceID", ""))
        if not self._silence:
            raise SluicegateError("Alertmanager gave no id for the silence, so no run was opened.")
        return self._silence

    def take_away(self) -> None:
        """End it."""
        self._ask(removed(self._url, self._silence))

    def _ask(self, ask: Ask) -> Mapping[str, Any]:
        try:
            with httpx.Client(timeout=_WITHIN_S, follow_redirects=False) as client:
                answer = client.request(ask.method, ask.url, json=ask.body)
            answer.raise_for_status()
            body = answer.json() if answer.content else {}
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise SluicegateError(f"Alertmanager did not take the silence: {error}") from error
        return body if isinstance(body, Mapping) else {}
