"""Make a row's event happen through the doorway the product uses, and say what it answered.

How the library's answers become `transition.Answer`:

- move_gate, order, open_run, init_queue and commit_step answer in Answer's own words.
- tick answers figures: `unreadable` where they say that the gate is not readable, `moved` where the gate's last move is
  the overdue limit's, else `unchanged`. Adoption shows in the state.
- settle answers for the job. A canary that made green is `moved`; one that did not count may stand for any answer that
  left the gate as it was, since a worker is not told why.
- Hand edits, lost data and the passing of time are nobody's call: always `moved`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import redis

from sluicegate import keys
from sluicegate.gate import DrainState, GateState, RollbackReason, Stored
from sluicegate.gate_events import (
    Answer,
    Apply,
    Beside,
    Event,
    HandEdit,
    Happening,
    OpenRun,
    Overdue,
    Person,
    Step,
    StepMove,
)
from sluicegate.policy import Action
from sluicegate.settings import Contract
from sluicegate.store import Store
from tests.contract.gate_rows_storage import (
    BESIDE_RUN,
    CANARY_FENCE,
    CANARY_ID,
    CONTROLLER_FENCE,
    DAMAGES,
    EARLIER_US,
    EMPTY_DAMAGES,
    EXECUTOR,
    OLD_FENCE,
    OTHER_RUN,
    RUN_FENCE,
    RUN_ID,
    WORKER,
    WRITTEN,
    Details,
    Storage,
    epoch_of,
)

Answers = frozenset[Answer]
NEW_RUN = "run-2"
NOT_COUNTED: Answers = frozenset({Answer.STALE, Answer.REFUSED, Answer.UNREADABLE})
_EFFECTS = {StepMove.RAMP_END: "ramp_end", StepMove.END: "finish"}
_REASONS = {
    Action.DRAIN: "provider_or_queue_age",
    Action.REJECT_NEW: "admission_threshold",
    Action.ADMIT: "normal",
    Action.HOLD: "pinned",
    Action.ROLL_BACK: "duplicate_side_effect",
}


def details_for(event: Event, number: int, limit_grace_ms: int) -> Details:
    """Choose what the written state must hold beside GateState, for `event` to be what it says."""
    damage = DAMAGES[number % len(DAMAGES)]
    overdue_ms = -limit_grace_ms - 1000
    if isinstance(event, Apply):
        return Details(number, damage, held=event.held)
    if isinstance(event, HandEdit):
        # Whoever writes a sensible value over a damaged raw key has repaired it.
        lasting = [damage for damage in DAMAGES if damage.words[1] not in (keys.DRAIN_STATE, keys.ADMISSION)]
        return Details(number, lasting[number % len(lasting)])
    if isinstance(event, Overdue):
        return Details(number, damage, limit_in_ms=overdue_ms)
    if not isinstance(event, Step):
        return Details(number, damage)
    if event.move is StepMove.REOPEN and not event.proven:
        return Details(number, damage, old_jobs=number % 2 == 0, urgent_jobs=number % 2 == 1)
    if event.move is StepMove.RAMP_END:
        early = number % 2 == 0 and not event.proven
        percent = 10 if not event.proven and not early else 100
        return Details(number, damage, limit_in_ms=60_000 if early else -1000, ramp_percent=percent)
    if _by_canary(event, number):
        of_the_run = event.fenced or number % 4 == 0
        return Details(
            number,
            damage,
            canary_ok=2 if event.proven else 1,
            canary_run=RUN_ID if of_the_run else OTHER_RUN,
            canary_window=event.fenced or number % 4 == 2,
        )
    return Details(number, damage)


def _by_canary(event: Event, number: int) -> bool:
    """Say whether a worker's canary makes the step; in every other row a person lets it pass, or nobody does."""
    return isinstance(event, Step) and event.move is StepMove.GREEN and number % 2 == 0


@dataclass(frozen=True, slots=True)
class Doorway:
    """Make events happen to one queue."""

    client: redis.Redis
    store: Store
    contract: Contract

    def prepare(self, pipe: Any, state: GateState, event: Event, details: Details, now_ms: int) -> None:
        """Queue what stands around the gate before the event: jobs, a running canary, what forbids a run."""
        storage, at = Storage(self.contract), self.store.keys
        if state.stored is Stored.UNINITIALISED:
            return
        storage.write_jobs(pipe, at, details, now_ms)
        if _by_canary(event, details.number):
            storage.write_canary(pipe, at, state, details, now_ms)
        if isinstance(event, OpenRun) and not event.allowed:
            self._forbid(pipe, details.number, now_ms)
        if isinstance(event, Beside):
            storage.write_beside(pipe, at, now_ms)

    def perform(self, state: GateState, event: Event, details: Details, epoch: int, now_ms: int) -> Answers:
        """Make the event happen; gives the answers it may stand for."""
        match event:
            case Apply():
                return self._apply(state, event, epoch)
            case Overdue():
                return self._overdue(state)
            case HandEdit():
                self.client.set(
                    self.store.keys(keys.ADMISSION if event.raw.on_admission else keys.DRAIN_STATE), event.raw.value
                )
                return _one(Answer.MOVED)
            case OpenRun():
                return self._open_run(event)
            case Step():
                return self._settle() if _by_canary(event, details.number) else self._step(event, details.number)
            case Beside():
                return self._beside(event, details.number)
            case Person():
                answer = self.store.order(event.order.value, "ada", "a row", pin=event.pin)
                return _one(Answer(answer.answer))
            case Happening():
                return self._happen(state, event, details, now_ms)

    def _forbid(self, pipe: Any, number: int, now_ms: int) -> None:
        at = self.store.keys
        match number % 3:
            case 0:
                pipe.set(at(keys.KILL), "ada: a row")
            case 1:
                pipe.set(at("cooldown:drain-and-recover"), str(now_ms + 60_000))
            case _:
                pipe.zadd(at(keys.RUNS_RECENT), {f"earlier-{n}": now_ms - 1000 * n for n in range(3)})

    def _apply(self, state: GateState, event: Apply, epoch: int) -> Answers:
        answer = self.store.move_gate(
            action=event.action.value,
            reason=_REASONS[event.action],
            exit_ok=event.held or event.action is not Action.ADMIT,
            epoch=epoch - 1 if event.stale else epoch,
            fence=_lead_fence(state),
            figures='{"row":1}',
        )
        return _one(Answer(answer.answer))

    def _overdue(self, state: GateState) -> Answers:
        gate = self.store.tick(_lead_fence(state)).gate
        if not gate.readable:
            return _one(Answer.UNREADABLE)
        return _one(Answer.MOVED if gate.reason == "limit_overdue" else Answer.UNCHANGED)

    def _open_run(self, event: OpenRun) -> Answers:
        body = {
            "runbook": event.runbook.value, "trigger": event.trigger.value, "run": NEW_RUN, "actor": "ada",
            "reason": "a row", "confirmed": event.confirmed, "digest": "d", "episode": "",
        }  # fmt: skip
        return _one(Answer(self.store.open_run(body).answer))

    def _step(self, event: Step, number: int) -> Answers:
        # A fence of before, or the right fence for another run.
        fence = RUN_FENCE if event.fenced or number % 2 else OLD_FENCE
        run = RUN_ID if event.fenced or number % 2 == 0 else OTHER_RUN
        body = step_body(_EFFECTS.get(event.move, event.move.value), event.reason, run, fence)
        answer = self.store.commit_step({**body, "approved_by": "ada: a row"} if event.proven else body)
        return _one(Answer(answer.answer))

    def _beside(self, event: Beside, number: int) -> Answers:
        fence = RUN_FENCE if event.fenced or number % 2 else OLD_FENCE
        run = BESIDE_RUN if event.fenced or number % 2 == 0 else OTHER_RUN
        body = step_body("reject_new", RollbackReason.MANUAL_OPERATOR_HOLD, run, fence)
        return _one(Answer(self.store.commit_step(body).answer))

    def _settle(self) -> Answers:
        settlement = {
            "worker": WORKER, "id": CANARY_ID, "fence": str(CANARY_FENCE), "request": "settle-1",
            "outcome": "succeeded", "call": {"kind": "ok", "status": 200, "latency_ms": 300},
        }  # fmt: skip
        settled = self.store.settle(settlement)
        if settled.answer != "ok":
            return NOT_COUNTED
        return _one(Answer.MOVED) if self.store.observe().gate.reason == "canaries_green" else NOT_COUNTED

    def _happen(self, state: GateState, event: Happening, details: Details, now_ms: int) -> Answers:
        at, empty = self.store.keys, state.stored is Stored.UNINITIALISED
        match event:
            case Happening.INIT:
                made = self.store.init_queue(self.contract.for_redis(), self.contract.digest(), "ada", "a row")
                return _one(Answer(made.answer))
            case Happening.LOSE_ALL:
                self._lose_all()
            case Happening.GARBAGE:
                damages = EMPTY_DAMAGES if empty else DAMAGES
                self.client.execute_command(*damages[details.number % len(damages)].of(at.prefix))  # type: ignore[no-untyped-call]
            case Happening.LOSE_RUN:
                self.client.delete(at.run(RUN_ID) if details.number % 2 else at(keys.LOCK_RUN))
            case Happening.FALL_BEHIND if state.stored is Stored.OK:
                self._fall_behind(state, now_ms)
            case Happening.DUPLICATE:
                self.store.confirm_duplicate("key-1", actor="ada", note="two effects in the provider's log")
            case Happening.HOUR_PASSED if not empty and self.client.type(at(keys.GATE)) == "hash":
                hour_ago = now_ms - round(self.contract.timings.second_drain_s * 1000) - 1000
                self.client.hset(at(keys.GATE), "reopened_at", str(hour_ago))
            case _:
                pass
        return _one(Answer.MOVED)

    def _lose_all(self) -> None:
        self.client.delete(*[self.store.keys(name) for name in WRITTEN])

    def _fall_behind(self, state: GateState, now_ms: int) -> None:
        """Put an older copy in place, a gate that stood open, after the store has seen the epoch that is lost."""
        self.store.observe()
        self._lose_all()
        older = GateState(Stored.OK, DrainState.ADMIT, reopened=state.reopened)
        with self.client.pipeline(transaction=False) as pipe:
            Storage(self.contract).write(pipe, self.store.keys, older, Details(), now_ms, epoch_of(now_ms) - EARLIER_US)
            pipe.execute()


def step_body(effect: str, reason: RollbackReason, run: str, fence: str) -> Mapping[str, Any]:
    """Give the arguments of commit_step."""
    return {
        "executor": EXECUTOR, "run": run, "fence": fence, "request": f"request-{effect}", "effect": effect, "seq": 2,
        "verb": effect, "phase": "done", "text": "a row", "detail": json.dumps({}), "reason": reason.value,
    }  # fmt: skip


def _lead_fence(state: GateState) -> str:
    return "0" if state.stored is Stored.UNINITIALISED else CONTROLLER_FENCE


def _one(answer: Answer) -> Answers:
    return frozenset({answer})
