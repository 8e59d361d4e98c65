"""Which damage costs which figures? What is read from a damaged part is left out, and nothing else."""

from __future__ import annotations

from sluicegate import telemetry as names
from sluicegate.job import JobState
from sluicegate.telemetry import ClassFigures, Part, Telemetry

# What is said of a figure that says nothing.
WRITTEN_OVER = "somebody wrote over what this is counted from; `sluicegate queue doctor` says more"
AGES = (Part.READY, Part.CLOCK)
DEADLINES = (Part.DEADLINES, Part.CLOCK)
_ALL = tuple(Part)
_LISTS = frozenset({Part.READY, Part.DELAYED, Part.RUNNING, Part.UNKNOWN, Part.BLOCKED, Part.DEADLINES})
_STATE_PARTS: dict[str, tuple[Part, ...]] = {
    names.PENDING_STATE: (Part.READY,),
    JobState.DELAYED: (Part.DELAYED, Part.DEADLINES),
    JobState.RUNNING: (Part.RUNNING, Part.DEADLINES),
    JobState.UNKNOWN: (Part.UNKNOWN,),
    JobState.BLOCKED: (Part.BLOCKED,),
}


def damaged_parts(telemetry: Telemetry) -> frozenset[Part]:
    """Name every part that is damaged; a single total that was written over is damage to the totals."""
    return telemetry.damaged | ({Part.COUNTERS} if telemetry.broken_counters else frozenset())


def damaged_lists(telemetry: Telemetry) -> frozenset[Part]:
    """Name the parts that list jobs and are damaged: whoever goes by them misses jobs that are there."""
    return telemetry.damaged & _LISTS


def contract_is_lost(telemetry: Telemetry) -> bool:
    """Say whether the queue's stored settings are gone: then nothing can be counted."""
    return not telemetry.settings_digest and telemetry.gate.initialised


def was_measured(telemetry: Telemetry, *parts: Part) -> bool:
    """Say whether a figure that is read from these parts says anything.

    It does not where one of them is damaged, or where the queue's stored settings are lost: what was not counted is
    not zero.
    """
    return not contract_is_lost(telemetry) and (not telemetry.damaged or telemetry.damaged.isdisjoint(parts))


def known(telemetry: Telemetry, value: float | None, *parts: Part) -> float | None:
    """Give a value that is read from these parts, None where it says nothing."""
    return value if was_measured(telemetry, *parts) else None


def known_jobs(telemetry: Telemetry, figures: Telemetry | ClassFigures) -> dict[str, float | None]:
    """Give the count of each state before the end, None where it is not known."""
    counts: dict[str, float | None] = {
        names.PENDING_STATE: figures.ready,
        JobState.DELAYED: figures.delayed,
        JobState.RUNNING: figures.running,
        JobState.UNKNOWN: figures.unknown,
        JobState.BLOCKED: figures.blocked,
    }
    if was_measured(telemetry, *_ALL):
        return counts
    return {state: known(telemetry, count, *_STATE_PARTS[state]) for state, count in counts.items()}
