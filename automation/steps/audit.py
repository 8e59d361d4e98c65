"""audit: list what was done twice, or may have been, by idempotency key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from automation.turn import Done, Progress, Turn

_LIMIT = 1000


async def audit(turn: Turn) -> Progress:
    """Write confirmed duplicates and suspected ones (late writes) into the journal."""
    entries = await asyncio.to_thread(turn.store.reconcile_log, _LIMIT)
    return Done(
        detail={
            "confirmed_duplicates": _fields(entries, "duplicate", "key", "note"),
            "suspected_duplicates": _fields(entries, "stale_write", "job", "outcome"),
        }
    )


def _fields(entries: Iterable[Mapping[str, str]], kind: str, *names: str) -> list[dict[str, str]]:
    return [{name: entry.get(name, "") for name in names} for entry in entries if entry["kind"] == kind]
