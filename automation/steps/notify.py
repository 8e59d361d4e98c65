"""notify: put a message into the outbox for each address, together with its journal entry."""

from __future__ import annotations

import structlog

from automation.turn import Done, Progress, Turn, Wait
from runbooks.verbs.notify import Notify
from sluicegate.run_journal import Phase

log = structlog.get_logger(__name__)


async def notify(turn: Turn) -> Progress:
    """Write one address a look: the journal counts them, so nobody is told twice by a run that was resumed."""
    params = turn.params(Notify)
    text = params.text.resolve(turn.context)
    told = len(turn.entries(Phase.PROGRESS))
    if told < len(params.to) - 1:
        await turn.commit(Phase.PROGRESS, "notify", text=text, arguments={"to": params.to[told]})
        return Wait(f"{told + 1} of {len(params.to)} are told")
    return Done("notify", {"to": list(params.to)}, text, {"to": params.to[-1]})
