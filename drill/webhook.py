"""Write what Alertmanager posts about an alert of this project's own rules (webhook version 4)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from rules.alert import Alert

_NOT_YET = "0001-01-01T00:00:00Z"


def firing(alert: Alert, since: datetime) -> dict[str, object]:
    """Return the body of the notification that an alert fires."""
    labels = {"alertname": alert.name.value, **alert.labels}
    group = {name: labels[name] for name in ("alertname", "queue")}
    fingerprint = hashlib.sha256(repr(sorted(labels.items())).encode()).hexdigest()[:16]
    posted = {
        "status": "firing",
        "labels": labels,
        "annotations": alert.annotations,
        "startsAt": since.astimezone(UTC).isoformat(),
        "endsAt": _NOT_YET,
        "generatorURL": "",
        "fingerprint": fingerprint,
    }
    return {
        "version": "4",
        "groupKey": "{}:{" + ", ".join(f'{name}="{value}"' for name, value in group.items()) + "}",
        "receiver": "sluicegate",
        "status": "firing",
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": alert.annotations,
        "externalURL": "",
        "truncatedAlerts": 0,
        "alerts": [posted],
    }
