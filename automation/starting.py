"""Say what opens a run for a named person."""

from __future__ import annotations

from automation.names import run_id
from runbooks.model import Runbook


def start_arguments(runbook: Runbook, actor: str, reason: str) -> dict[str, object]:
    """Give what opens a run for a named person."""
    return {
        "runbook": runbook.name,
        "trigger": "person",
        "run": run_id(),
        "actor": actor,
        "reason": reason,
        "confirmed": True,
        "digest": runbook.digest,
        "episode": "",
    }
