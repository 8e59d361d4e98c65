"""Which command does a message send its reader to? Each is written once, with all that it needs."""

from __future__ import annotations

BY_NAME = "--as NAME --reason WHY"
# Without a file both would write the drill's classes, so both refuse.
QUEUE_INIT = f"sluicegate queue init --settings FILE {BY_NAME}"
QUEUE_APPLY = f"sluicegate queue apply --settings FILE {BY_NAME}"
QUEUE_UPGRADE = f"sluicegate queue upgrade {BY_NAME}"
GATE_OPEN = f"sluicegate gate open {BY_NAME}"
GATE_OPEN_END_RUN = f"sluicegate gate open --end-run {BY_NAME}"
# What brings a queue back whose control keys are lost while its jobs are not: the one, then the other.
REBUILD = (QUEUE_APPLY, GATE_OPEN)
GATE_RELEASE = f"sluicegate gate release {BY_NAME}"
GATE_ACKNOWLEDGE = f"sluicegate gate acknowledge {BY_NAME}"
RUN = f"sluicegate automation run drain-and-recover {BY_NAME}"


def approve(run: str, step: str) -> str:
    """Give the command that lets a step pass which waits for a person."""
    return f"sluicegate automation approve {run} {step} {BY_NAME}"


def abort(run: str) -> str:
    """Give the command that ends a run, closed and pinned."""
    return f"sluicegate automation abort {run} {BY_NAME}"
