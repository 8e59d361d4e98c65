"""notify: tell people in the runbook's own words, together with the step's journal entry."""

from __future__ import annotations

import structlog

from automation.turn import Done, Progress, Turn
from runbooks.verbs.notify import Notify

log = structlog.get_logger(__name__)


async def notify(turn: Turn) -> Progress:
    """Write the notice; every receiver that hears `said` is told of it from there, and no run waits for that."""
    text = turn.params(Notify).text.resolve(turn.context)
    log.warning("said", run=turn.run_id, text=text)
    return Done("notify", text=text)
