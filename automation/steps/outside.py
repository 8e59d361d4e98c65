"""Carry out an installed verb, in a thread of its own: its intent first, its outcome after it."""

from __future__ import annotations

import structlog

from automation.outside import Came, Outcome
from automation.own_threads import OwnThreads
from automation.steps.http import carried_out
from automation.turn import Progress, Turn
from runbooks.verbs.outside import Outside
from runbooks.verbs.step import OnUnknown
from sluicegate.printable import printable
from sluicegate.run_steps import NotDone, OutsideCall, OutsideStep

log = structlog.get_logger(__name__)

_CALL_TIMEOUT_S = 60.0
_TEXT_MOST = 500


class CallingOutside:
    """Call installed verbs, one call of a step at a time, however long one hangs."""

    def __init__(self) -> None:
        self._threads = OwnThreads()

    async def __call__(self, turn: Turn) -> Progress:
        """Call it, or settle what became of it."""
        params = turn.params(Outside)
        act = OutsideAct(params.by, params.call(turn.context), self._threads)
        return await carried_out(turn, act, params.on_unknown or OnUnknown.HOLD)


class OutsideAct:
    """Make one call of somebody else's verb; what it raises but NotDone leaves the outcome unknown."""

    def __init__(self, by: OutsideStep, call: OutsideCall, threads: OwnThreads) -> None:
        self._by = by
        self._call = call
        self._threads = threads

    async def make(self) -> Outcome | None:
        try:
            said = await self._threads.call(self._call.idempotency_key, _CALL_TIMEOUT_S, self._by.act, self._call)
        except NotDone as error:
            return Outcome(Came.AGAIN, f"not done: {_line(error)}")
        except Exception as error:  # noqa: BLE001 (a stranger's code: whatever it raised, it may have acted before)
            log.warning("outcome_unknown", run=self._call.run_id, error=repr(error))
            return None
        return Outcome(Came.DONE, _line(said) or "done")

    async def done(self) -> bool | None:
        try:
            return await self._threads.call(self._call.idempotency_key, _CALL_TIMEOUT_S, self._by.probe, self._call)
        except Exception as error:  # noqa: BLE001 (as above: a probe that fails can't tell)
            log.warning("probe_failed", run=self._call.run_id, error=repr(error))
            return None


def _line(said: object) -> str:
    return printable(" ".join(str(said).split())[:_TEXT_MOST])
