"""Own a live run: its lease, its fence, and the name under which both are held."""

from __future__ import annotations

import asyncio

import structlog

from sluicegate.run_replies import RunClaim
from sluicegate.store import Store

log = structlog.get_logger(__name__)


class Owner:
    """Claim the run that holds the queue's lock, or the one of a runbook `beside` it."""

    def __init__(self, store: Store, name: str, beside: str = "") -> None:
        self._store = store
        self._name = name
        self._beside = beside
        self.run, self.fence = "", ""
        # A look and a renewal that claim at once would take the run from each other.
        self._claiming = asyncio.Lock()

    async def claim(self) -> RunClaim:
        """Own the run if it is free or mine already."""
        async with self._claiming:
            claim = await asyncio.to_thread(self._store.claim_run, self._name, self.run, self.fence, self._beside)
            if not claim.owned or claim.run is None:
                self.run = ""
                return claim
            if claim.fence != self.fence:
                log.info("run_claimed", run=claim.run.run_id, runbook=claim.run.runbook, state=claim.run.state)
            self.run, self.fence = claim.run.run_id, claim.fence
            return claim

    async def renew(self) -> None:
        """Keep the lease while a look takes long; what the look holds is fenced by its own fence."""
        if self.run:
            await self.claim()

    def let_go(self) -> None:
        """Forget a run that has ended."""
        self.run = ""
