"""Catch a worker between its claim and its first call, as if what lies between took it longer than its lease."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from drill.rig import CAUGHT, Rig
from sluicegate.errors import SluicegateError

# A worker needs about a millisecond from the answer of its claim to the record of its intent. It runs in slices shorter
# than that, and the queue is looked at while it stands still: so it can't slip through unless the machine stalls.
_SLICE_S = 0.0002
_SETTLED_S = 0.02
_CLAIMS_WITHIN_S = 3.0
_CALLED_WITHIN_S = 5.0


def catch_before_its_call(rig: Rig, name: str, first: int, last: int) -> int:
    """Submit jobs (numbers `first` to `last`), one after another, until the worker stands between claim and call.

    It stays suspended then, holding that one job without a call. Returns the job's number; one that slipped through
    was done as ever. No other worker may run meanwhile. Raises SluicegateError when all slipped through.
    """
    children = rig.topology.children
    for number in range(first, last + 1):
        children.suspend(name)
        rig.send(number, number)
        if _claims_in_slices(rig, name):
            rig.note(CAUGHT, f"SIGSTOP of {name}, which has claimed job {number} and made no call")
            return number
        children.resume(name)
        _until_idle(rig, name)
    raise SluicegateError(f"{name} was not caught between claim and call in {last + 1 - first} starts.")


def _claims_in_slices(rig: Rig, name: str) -> bool:
    """Let a suspended worker run in slices until it has claimed; True when it stands before its call."""
    children = rig.topology.children
    deadline = time.monotonic() + _CLAIMS_WITHIN_S
    while time.monotonic() < deadline:
        if held := _held(rig):
            return not _has_intent(held) and _stays_so(rig)
        children.resume(name)
        time.sleep(_SLICE_S)
        children.suspend(name)
    return False


def _stays_so(rig: Rig) -> bool:
    """Look again a moment later: what the worker had sent before it was stopped has arrived by then."""
    time.sleep(_SETTLED_S)
    held = _held(rig)
    return held is not None and not _has_intent(held)


def _held(rig: Rig) -> Mapping[str, Any] | None:
    """Return the record of the one job that runs."""
    running = rig.topology.store.list_jobs("running")
    return rig.topology.store.job(running[0]) if running else None


def _has_intent(record: Mapping[str, Any]) -> bool:
    return bool(record.get("ledger"))


def _until_idle(rig: Rig, name: str) -> None:
    deadline = time.monotonic() + _CALLED_WITHIN_S
    while _held(rig) is not None:
        if time.monotonic() >= deadline:
            raise SluicegateError(f"{name} holds its job for more than {_CALLED_WITHIN_S:g} s.")
        time.sleep(_SETTLED_S)
