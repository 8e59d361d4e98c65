"""Write the queries of panels: this queue's series of a record, its firing alerts, and its closed gate."""

from __future__ import annotations

from dashboards.model import Query
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.records import AlertName, Record
from sluicegate.telemetry import DRAIN_STATE, QUEUE_LABEL

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


def mean(seconds: Record, count: Record, label: str) -> str:
    """Divide the time that things took by how many they were, both since the queue was opened, by one label.

    What never happened has no mean, rather than one that is no number.
    """
    by = f"{QUEUE_LABEL}, {label}"
    return f"{series(seconds)} / on ({by}) (sum by ({by}) ({series(count)}) > 0)"


def closed_gate() -> str:
    """Select the states in which the gate is not in `admit`: each stretch of one begins and ends with a move."""
    return f'{records.DRAIN_STATE.name}{{{_QUEUE},{DRAIN_STATE}!="{DrainState.ADMIT}"}} == 1'


def firing_alerts() -> str:
    """Select the queue's firing alerts, without the one that always fires."""
    return f'ALERTS{{alertstate="firing",{_QUEUE},alertname!="{AlertName.WATCHDOG}"}}'
