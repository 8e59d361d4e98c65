"""Parse what Alertmanager (webhook version 4) or Grafana (version 1) posts: data, all of it, and never a template."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, Field, ValidationError


class PostedAlert(BaseModel):
    """Hold one alert as it is posted; what else is in it is ignored."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    starts_at: datetime = Field(alias="startsAt")
    ends_at: datetime = Field(alias="endsAt")
    fingerprint: str = Field(min_length=1, max_length=64, pattern="^[0-9A-Za-z_-]+$")


class PostedNotification(BaseModel):
    """Hold a notification as it is posted; what else is in it is ignored."""

    version: str
    group_key: str = Field(alias="groupKey")
    alerts: list[PostedAlert] = Field(min_length=1)
    truncated_alerts: int = Field(alias="truncatedAlerts", default=0)


@dataclass(frozen=True, slots=True)
class Alert:
    """Hold one alert of a notification; times in ms since 1970, 0 for an end that has not come."""

    fingerprint: str
    firing: bool
    name: str
    labels: dict[str, str]
    starts_at_ms: int
    ends_at_ms: int

    def kept_labels(self) -> dict[str, str]:
        """Give the labels to keep, cut to a size that fills no server however large they were posted."""
        if len(self.labels) <= _LABELS_MOST and sum(map(len, self.labels.values())) <= _LABEL_MOST:
            longest = max(map(len, self.labels), default=0)
            if longest <= _LABEL_NAME_MOST:
                return self.labels
        first = sorted(self.labels.items())[:_LABELS_MOST]
        return {name[:_LABEL_NAME_MOST]: value[:_LABEL_MOST] for name, value in first}


@dataclass(frozen=True, slots=True)
class Notification:
    """Hold one webhook request: its group, its alerts, and how many Alertmanager left out."""

    group: str
    alerts: tuple[Alert, ...]
    truncated: int


class NotUnderstood(Exception):
    """Say why a body can never be understood: not JSON, not version 4, or no alerts."""


_FIRST_REAL_YEAR = 1970
# A group's key is only for readers of the inbox; refusing a long one would lose its alerts.
_GROUP_MOST = 1024
# So with the labels: a runbook is chosen by all of them, kept is what a reader can take in.
_LABELS_MOST, _LABEL_NAME_MOST, _LABEL_MOST = 64, 100, 500
_PLACE_MOST = 100


# What each sender's bodies say of their form; Grafana's is Alertmanager's with fields of its own.
_ALERTMANAGER, _GRAFANA = ("an Alertmanager webhook of version 4", "4"), ("a Grafana webhook of version 1", "1")


def parse(body: bytes) -> Notification:
    """Parse a body of Alertmanager; unknown fields are ignored. Raises NotUnderstood with a sentence for its sender."""
    return _parsed(body, *_ALERTMANAGER)


def parse_grafana(body: bytes) -> Notification:
    """Parse a body of Grafana's alerting in the same way."""
    return _parsed(body, *_GRAFANA)


def _parsed(body: bytes, form: str, version: str) -> Notification:
    try:
        posted = _read(body)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood(f"This is not {form}: {_first(error)}.") from error
    if posted.version != version:
        raise NotUnderstood(
            f"This webhook has version {posted.version[:20]!r}; only version {version!r} is understood."
        )
    alerts = tuple(_alert(alert) for alert in posted.alerts)
    return Notification(_encodable(posted.group_key)[:_GROUP_MOST], alerts, posted.truncated_alerts)


def _read(body: bytes) -> PostedNotification:
    try:
        return PostedNotification.model_validate_json(body)
    except ValidationError:
        # It takes less than JSON can carry, a lone surrogate for one; and this way tells what is no JSON at all.
        return PostedNotification.model_validate(json.loads(body))


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        # A name in it is the sender's: it may be as long as a body, or no text at all.
        place = ".".join(str(part) for part in first["loc"])[:_PLACE_MOST]
        return f"{place if place.isprintable() else ascii(place)}: {first['msg']}"
    return "the body is not JSON"


def _alert(posted: PostedAlert) -> Alert:
    return Alert(
        fingerprint=posted.fingerprint,
        firing=posted.status == "firing",
        name=_encodable(posted.labels.get("alertname", ""))[:_LABEL_MOST],
        labels=posted.labels,
        starts_at_ms=_ms(posted.starts_at),
        ends_at_ms=_ms(posted.ends_at),
    )


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and no server takes."""
    return text.encode("utf-8", "replace").decode()


def _ms(moment: datetime) -> int:
    """Give ms since 1970; the year 1 stands for an end that has not come."""
    if moment.year < _FIRST_REAL_YEAR:
        return 0
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
