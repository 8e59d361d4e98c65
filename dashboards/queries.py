"""Write the queries of panels: this queue's series of a record, and its firing alerts."""

from __future__ import annotations

from dashboards.model import Query
from sluicegate.records import AlertName, Record
from sluicegate.telemetry import QUEUE_LABEL

_QUEUE = f'{QUEUE_LABEL}="$queue"'


def series(record: Record) -> str:
    """Select a record's series of the queue that the reader has chosen."""
    return f"{record.name}{{{_QUEUE}}}"


def plot(record: Record, legend: str) -> Query:
    """Plot a record as it is: the very series that the alerts compare."""
    return Query(series(record), legend)


def since(record: Record) -> Query:
    """Plot the seconds since a recorded timestamp."""
    return Query(f"time() - {series(record)}", "ago")


def firing_alerts() -> str:
    """Select the queue's firing alerts, without the one that always fires."""
    return f'ALERTS{{alertstate="firing",{_QUEUE},alertname!="{AlertName.WATCHDOG}"}}'
