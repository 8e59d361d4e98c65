"""Act on a system outside: the intent first, the outcome after it, and what follows where it was lost (contract §7).

The journal of a step says how far its act came, so any executor can go on. An act whose outcome is not known is never
blindly made again: it is probed, made again under the same key where the runbook calls that safe, or left to a person.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from automation.turn import Turn
from runbooks.verbs.step import OnUnknown
from sluicegate.run_journal import Phase

MOST_CALLS = 3
AGAIN_AFTER_S = 2.0


class Came(StrEnum):
    """Name what is known of an act once it was made."""

    DONE = "done"  # it was carried out
    AGAIN = "again"  # it was certainly not carried out, and may be made again
    REFUSED = "refused"  # it did not succeed, and making it again would not help
    UNCLEAR = "unclear"  # it was answered, and not by what of it was carried out


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold what an act came to, and what the journal says of it."""

    came: Came
    text: str


class Act(Protocol):
    """Be something that is done outside Redis."""

    async def make(self) -> Outcome | None:
        """Do it; None where nobody knows whether it was done."""
        ...

    async def done(self) -> bool | None:
        """Look whether it has been done; None where that can't be told."""
        ...


class Standing(StrEnum):
    """Name how far an act has come."""

    DONE = "done"  # the step goes on
    PENDING = "pending"  # look again
    PERSON = "person"  # a named person decides


def why_a_person(turn: Turn) -> str:
    """Say why a person decides: it failed, or nobody knows, which is another thing to look for."""
    told = [entry.phase for entry in turn.entries() if entry.phase in (Phase.OUTCOME, Phase.UNKNOWN)]
    unknown = bool(told) and told[-1] == Phase.UNKNOWN
    return "nobody knows whether it was done" if unknown else "it did not succeed"


async def act_once(turn: Turn, act: Act, on_unknown: OnUnknown) -> Standing:
    """Bring the act one look further: make it, or settle what became of it.

    What was certainly not carried out is made again, up to three times in all.
    """
    told = [entry for entry in turn.entries() if entry.phase in (Phase.INTENT, Phase.OUTCOME, Phase.UNKNOWN)]
    if not told:
        return await _make(turn, act)
    last = told[-1]
    if last.phase == Phase.INTENT:
        await turn.commit(Phase.UNKNOWN, text="an intent without its outcome: the executor or the answer was lost")
        return Standing.PENDING
    came = json.loads(last.detail).get("came") if last.phase == Phase.OUTCOME else None
    if came == Came.DONE:
        return Standing.DONE
    if came == Came.REFUSED or (last.phase == Phase.UNKNOWN and on_unknown is OnUnknown.HOLD):
        return Standing.PERSON
    exhausted = len(turn.entries(Phase.INTENT)) >= MOST_CALLS
    if last.phase == Phase.UNKNOWN and on_unknown is OnUnknown.PROBE:
        done = await act.done() if turn.may_probe() else None
        if done:
            await _told(turn, Outcome(Came.DONE, "done, by the probe"))
            return Standing.DONE
        if done is None and not exhausted:
            return Standing.PENDING  # whether it was done can't be told, so it is not made again
    if exhausted:
        return Standing.PERSON
    if turn.telemetry.at_ms - last.at_ms < AGAIN_AFTER_S * 1000:
        return Standing.PENDING
    return await _make(turn, act)


async def _make(turn: Turn, act: Act) -> Standing:
    await turn.commit(Phase.INTENT, text=f"call {len(turn.entries(Phase.INTENT)) + 1}")
    outcome = await act.make()
    if outcome is not None:
        await _told(turn, outcome)
    return Standing.PENDING


async def _told(turn: Turn, outcome: Outcome) -> None:
    phase = Phase.UNKNOWN if outcome.came is Came.UNCLEAR else Phase.OUTCOME
    await turn.commit(phase, text=outcome.text, detail={"came": outcome.came.value})
