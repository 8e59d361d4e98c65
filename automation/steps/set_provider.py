"""set_provider: point the workers at another endpoint, in one go with its journal entry."""

from __future__ import annotations

from automation.turn import Done, Progress, Turn
from runbooks.verbs.set_provider import SetProvider
from sluicegate.http_address import masked


async def set_provider(turn: Turn) -> Progress:
    """Write the endpoint; where the settings name none, nothing is changed."""
    url = turn.params(SetProvider).target(turn.context)
    if url is None:
        return Done(detail={"endpoint": "none is set"})
    return Done("endpoint", {"endpoint": masked(url)}, arguments={"endpoint": url})
