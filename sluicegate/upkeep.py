"""Do what a worker owes the queue beside its jobs: sweep, promote, renew leases, say hello, know the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sluicegate import __version__
from sluicegate.attempt import Setting, log_expired
from sluicegate.errors import StoreError
from sluicegate.leases import Leases
from sluicegate.store_link import longer
from sluicegate.worker_rules import WorkerRules, rules_of

HELLO_EVERY_S = 2.0
_BATCH = 100
_FIRST_BACKOFF_S = 0.1


class Upkeep:
    """Run the background loops of one worker; a store that is away only makes them slower."""

    def __init__(self, setting: Setting, leases: Leases, sweep_ms: int) -> None:
        self._with = setting
        self._leases = leases
        self._sweep_s = sweep_ms / 1000
        self._renew_now = asyncio.Event()
        self.rules: WorkerRules | None = None

    async def run(self) -> None:
        """Run all loops until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forever(self._sweep))
            group.create_task(self._forever(self._renew))
            group.create_task(self._forever(self._hello))

    def renew_soon(self) -> None:
        """Renew without waiting for the next third of the lease."""
        self._renew_now.set()

    async def learn_rules(self) -> WorkerRules | None:
        """Read the stored contract; None as long as there is none. The last one read stays in force."""
        with_ = self._with
        rules = await with_.link.call(self._read_rules)
        if rules is not None and rules != self.rules:
            with_.log.info("contract_read", digest=rules.digest, lease_s=rules.lease_s)
            self.rules = rules
            # Another lease, another pace: the wait that is under way was for the one before.
            self.renew_soon()
        return self.rules

    def _read_rules(self) -> WorkerRules | None:
        return rules_of(self._with.store.settings())

    async def _forever(self, turn: Callable[[], Awaitable[None]]) -> None:
        wait_s = _FIRST_BACKOFF_S
        while True:
            try:
                await turn()
                wait_s = _FIRST_BACKOFF_S
            except StoreError:
                await self._with.clock.sleep(wait_s)
                wait_s = longer(wait_s)

    async def _sweep(self) -> None:
        link, store = self._with.link, self._with.store
        swept = await link.call(store.sweep)
        for event in swept.expired:
            log_expired(self._with.log, event)
        for event in swept.lost:
            self._with.log.warning(
                "lease_expired",
                job_id=event.job_id,
                queue_class=event.queue_class,
                attempt=event.attempt,
                now=event.state,
            )
        promoted = await link.call(store.promote)
        if not swept.more and promoted < _BATCH:
            await self._with.clock.sleep(self._sweep_s)

    async def _renew(self) -> None:
        every_s = self.rules.renew_every_s if self.rules is not None else HELLO_EVERY_S
        try:
            async with asyncio.timeout(every_s):
                await self._renew_now.wait()
        except TimeoutError:
            pass
        self._renew_now.clear()
        held = list(self._leases.to_renew().items())
        for start in range(0, len(held), _BATCH):
            # Not longer than until the next third: then it is looked up anew what makes progress.
            asked = dict(held[start : start + _BATCH])
            renewed = await self._with.link.until_answered(every_s, self._with.store.renew, self._with.worker_id, asked)
            for job_id in renewed.lost:
                if self._leases.expects(job_id, asked[job_id]):
                    self._with.log.warning("lease_lost", job_id=job_id, before="renewal")

    async def _hello(self) -> None:
        await self._with.link.call(self._with.store.hello, self._with.worker_id, __version__)
        await self.learn_rules()
        await self._with.clock.sleep(HELLO_EVERY_S)
