"""Write the queries of panels: this queue's series of a record, its firing alerts, and its closed gate."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dashboards.model import Query
from sluicegate import records
from sluicegate.gate import DrainState
from sluicegate.records import AlertName, Record
from sluicegate.telemetry import DRAIN_STATE, QUEUE_LABEL

_VARIABLE = "$queue"
_QUEUE = f'{QUEUE_LABEL}="{_VARIABLE}"'
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def filled(expression: str, queue: str) -> str:
    """Put a queue in the place of the variable, as Grafana does before it asks."""
    return expression.replace(_VARIABLE, queue)


def legend_labels(legend: str) -> tuple[str, ...]:
    """Name the labels that a legend asks its series for."""
    return tuple(_PLACEHOLDER.findall(legend))


def legend_of(legend: str, labels: Mapping[str, str]) -> str:
    """Put the labels of a series in their places in its legend; one that it lacks is empty."""
    return _PLACEHOLDER.sub(lambda found: labels.get(found[1], ""), legend)


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
