"""Finish a rollback whose gate move is made: put back what the run changed, call its hooks in order, end the run.

The gate is drain/closed and pinned before this begins, and stays so. A hook that does not succeed keeps none of the
others from being called, and the run then reads as degraded: never as one that rolled back cleanly (contract §7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import structlog

from automation.command_act import CommandAct
from automation.http_act import HttpAct
from automation.outside import Act, Standing, act_once, why_a_person
from automation.turn import Turn
from runbooks.context import Context
from runbooks.model import OnTimeout, Step
from runbooks.values import Duration
from runbooks.verbs.command import Command
from runbooks.verbs.http import Http
from runbooks.verbs.rollback import FIRST_PLACE, LAST_PLACE, Restore
from runbooks.verbs.step import OnUnknown, StepParams
from sluicegate.run_journal import Phase
from sluicegate.run_steps import ROLLBACK_VERB

log = structlog.get_logger(__name__)

_WITHIN = Duration("60s")


@dataclass(frozen=True, slots=True)
class RollbackPart(StepParams):
    """Hold one part of a rollback: its line, and the act it consists of, None for putting the provider back."""

    text: str
    act: Act | None
    on_unknown: OnUnknown
    verb: ClassVar[str] = ROLLBACK_VERB

    def line(self, context: Context) -> str:
        return self.text


async def look(turn: Turn, *, known: bool) -> str | None:
    """Bring the rollback one look further; gives None while it goes on, else how it ended, '' for cleanly.

    Hooks of another version than this one's (`known` is False) are not guessed at.
    """
    if not _anything_was_done(turn):
        return ""
    if not known:
        return "its hooks, which are of another version"
    failed = []
    for place, part in enumerate(_parts(turn), start=FIRST_PLACE):
        here = replace(turn, step=Step(place, part, _WITHIN, OnTimeout.HOLD))
        entries = here.entries()
        if any(entry.phase == Phase.DONE for entry in entries):
            continue
        if any(entry.phase == Phase.FAILED for entry in entries):
            failed.append(part.text)
            continue
        await _further(here, part)
        return None
    return "; ".join(failed)


def last_turn(turn: Turn) -> Turn:
    """Give the turn in whose place the end of the rollback is written."""
    return replace(turn, step=Step(LAST_PLACE, RollbackPart("", None, OnUnknown.HOLD), _WITHIN, OnTimeout.HOLD))


def _anything_was_done(turn: Turn) -> bool:
    """Say whether the run came past its opening: where nothing was done, nothing is put back."""
    return any(entry.phase == Phase.STARTED for entry in turn.history.journal)


def _parts(turn: Turn) -> Iterator[RollbackPart]:
    rollback, context = turn.runbook.rollback, turn.context
    if rollback is None:
        return
    lines = rollback.lines(context)
    if Restore.PROVIDER in rollback.restore:
        yield RollbackPart(next(lines), None, OnUnknown.HOLD)
    for hook in rollback.hooks:
        if hook.call_line(context) is None:
            continue
        text = next(lines)
        match hook:
            case Http():
                act: Act = HttpAct(hook.hook, hook.probe_url(context), context)
                yield RollbackPart(text, act, hook.on_unknown(context))
            case Command(name=name):
                act = CommandAct(hook, context, f"{context.run_id}/{ROLLBACK_VERB}/{name}")
                yield RollbackPart(text, act, hook.on_unknown or OnUnknown.HOLD)


async def _further(turn: Turn, part: RollbackPart) -> None:
    started = turn.entries(Phase.STARTED)
    if not started:
        await turn.commit(Phase.STARTED, text=part.text)
        return
    if part.act is None:
        answer = await turn.commit(Phase.DONE, "restore_endpoint", text="the workers are pointed back")
        if answer.answer != "moved":
            await turn.commit(Phase.DONE, text="this run had pointed nobody elsewhere")
        return
    standing = await act_once(turn, part.act, part.on_unknown)
    late = turn.elapsed_s > turn.step.timeout.resolve(turn.context)
    if standing is Standing.DONE:
        await turn.commit(Phase.DONE)
    elif standing is Standing.PERSON or late:
        why = "it took too long" if late else why_a_person(turn)
        log.error("rollback_hook_failed", run=turn.run_id, hook=part.text, why=why)
        await turn.commit(Phase.FAILED, text=f"{why}; the gate stays closed, and the other hooks are called")
