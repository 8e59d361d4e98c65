"""Ask for a run that no named person asked for: the queue, then what holds over all queues, then the queue again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from automation.preflight import weaknesses
from sluicegate.all_queues import AllQueues, Holder, Standing
from sluicegate.errors import StoreError
from sluicegate.gate import Runbook as LockHolder
from sluicegate.replies import GateAnswer
from sluicegate.service_settings import WeakServer
from sluicegate.store import Store

log = structlog.get_logger(__name__)

GRANTED = "granted"
# A permit whose run is not there after so long was taken by somebody who died before opening it.
_OPENED_WITHIN_MS = 30_000

# Gives a store of another queue, for a look; the caller closes it.
StoreOf = Callable[[str], Store]


class Opening:
    """Open runs within the limits of the queue and of all queues; what can't be asked opens nothing.

    A permit is kept until its run is over. Whoever meets a full house looks at the runs of the others himself, so a
    process that died keeps no place. Raises StoreError where a server does not answer.
    """

    def __init__(
        self, store: Store, everywhere: AllQueues, store_of: StoreOf, weak_server: WeakServer = WeakServer.WARN
    ) -> None:
        self.store = store
        self.everywhere = everywhere
        self._store_of = store_of
        self._weak_server = weak_server

    def ask(self, arguments: Mapping[str, object]) -> GateAnswer:
        """Ask for a run (see run.lua for the arguments)."""
        if arguments["runbook"] not in set(LockHolder):
            return self.store.open_run({**arguments, "permit": _switched_off(self.everywhere.standing()) or GRANTED})
        answer = self.store.open_run({**arguments, "permit": "ask"})
        if answer.answer != "permit":
            return answer
        run = str(arguments["run"])
        permit = self._permit(run, answer.limits)
        answer = self.store.open_run({**arguments, "permit": permit})
        if permit == GRANTED and answer.answer != "moved":
            self._give_back(run, answer.run)
        return answer

    def _give_back(self, run: str, live: str) -> None:
        """Leave the place of a run that was not opened: to the one that somebody else opened meanwhile, if any."""
        if live:
            self.everywhere.hold_place(self.store.queue, live)
        else:
            self.everywhere.leave_place(self.store.queue, run)

    def _permit(self, run: str, limits: Mapping[str, int]) -> str:
        if weaknesses(self.store) and self._weak_server is WeakServer.REFUSE:
            return "weak_server"
        queue = self.store.queue
        standing = self.everywhere.permit(queue, run, limits)
        if standing.answer == "concurrent_runs":
            gone = [holder for holder in standing.holders if holder.queue != queue and self._is_over(holder, standing)]
            if gone:
                log.info("places_left", runs=[holder.run for holder in gone])
                standing = self.everywhere.permit(queue, run, limits, gone)
        return standing.answer

    def _is_over(self, holder: Holder, standing: Standing) -> bool:
        """Say whether a run is surely over; one that can't be looked at is taken for live."""
        store = self._store_of(holder.queue)
        try:
            history = store.run(holder.run)
        except StoreError as error:
            log.warning("run_not_seen", queue=holder.queue, run=holder.run, why=str(error))
            return False
        finally:
            store.close()
        if history is None:
            return standing.at_ms - holder.since_ms > _OPENED_WITHIN_MS
        return not history.run.live


def _switched_off(standing: Standing) -> str:
    """Give what forbids even a run that takes nobody's place, or nothing."""
    if standing.kill is not None:
        return "kill_switch"
    return "breaker" if standing.breaker is not None else ""
