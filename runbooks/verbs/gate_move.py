"""Name what every gate move writes; the move code in the function library writes all of it in one go."""

from __future__ import annotations

from runbooks.context import Context
from sluicegate import keys as names

_WRITTEN = (
    names.DRAIN_STATE,
    names.ADMISSION,
    names.CANARY_OK_COUNT,
    names.ROLLBACK_REASON,
    names.GATE,
    names.EPOCH,
    names.GATE_LOG,
)


def written_by_a_move(context: Context) -> str:
    """Give the keys of a gate move under the queue's prefix, separated by commas."""
    return ", ".join(context.keys(name) for name in _WRITTEN)
