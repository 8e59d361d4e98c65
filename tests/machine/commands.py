"""Every command of the queue as a value: how it is sent, and what the model says of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.admission import Decision
from sluicegate.contract import Contract
from sluicegate.replies import Claimed, GateAnswer
from sluicegate.run_replies import StepAnswer
from sluicegate.store import Store
from tests.machine import dispatch, settlement
from tests.machine.admission import decide
from tests.machine.agreement import agree
from tests.machine.world import Job, World, enter

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """Pair what is sent with what is expected; `expect` changes the world and fails where the answer is another.

    `repeatable` says that the same command again must answer the same and count once.
    """

    kind: str
    send: Callable[[Store], Any]
    expect: Callable[[World, Any], None]
    repeatable: bool = False


def _nothing(world: World, answer: object) -> None:
    """The gate's own rules are checked elsewhere; that no job moved is seen by the comparison."""


def admit(jobs: list[Arguments]) -> Command:
    def expect(world: World, answer: tuple[Decision, ...]) -> None:
        agree(answer, tuple(decide(world, job) for job in jobs), "the decisions")

    return Command("admit", lambda store: store.admit([_words(job) for job in jobs]), expect, repeatable=True)


def _words(job: Arguments) -> tuple[str, ...]:
    wishes = f"{job['deadline_ms']} {job['deadline_in_ms']} {job['cost_class']}"
    return (job["id"], job["class"], job["fp"], job["payload"], wishes)


def claim(worker: str, request: str, slots: int) -> Command:
    def expect(world: World, answer: Claimed) -> None:
        agree(answer.at_ms, world.now, "the instant of a claim")
        dispatch.claim(world, worker, request, slots, answer)

    return Command("claim", lambda store: store.claim(worker, request, slots), expect, repeatable=True)


def intent(worker: str, job_id: str, fence: int) -> Command:
    return Command(
        "intent",
        lambda store: store.intent(worker, job_id, fence),
        lambda world, answer: dispatch.intent(world, job_id, fence, answer),
        repeatable=True,
    )


def renew(worker: str, leases: Mapping[str, int]) -> Command:
    return Command(
        "renew",
        lambda store: store.renew(worker, leases),
        lambda world, answer: dispatch.renew(world, worker, leases, answer),
        repeatable=True,
    )


def settle(sent: Arguments) -> Command:
    return Command(
        "settle",
        lambda store: store.settle(sent),
        lambda world, answer: settlement.settle(world, sent, answer),
        repeatable=True,
    )


def sweep() -> Command:
    return Command("sweep", lambda store: store.sweep(), settlement.sweep, repeatable=True)


def promote() -> Command:
    return Command("promote", lambda store: store.promote(), settlement.promote, repeatable=True)


def reconcile(job_id: str, outcome: str, source: str, fence: int | None = None) -> Command:
    seen = None if fence is None else str(fence)
    return Command(
        "reconcile",
        lambda store: store.reconcile(job_id, outcome, actor="ada", reason="because", source=source, fence=seen),
        lambda world, answer: settlement.reconcile(world, job_id, outcome, (source, fence), answer),
        repeatable=True,
    )


def duplicate(key: str) -> Command:
    return Command(
        "duplicate",
        lambda store: store.confirm_duplicate(key, actor="ada", note="seen twice"),
        lambda world, answer: settlement.confirm_duplicate(world, key),
    )


def order(name: str) -> Command:
    return Command("order", lambda store: store.order(name, "ada", "because"), _nothing)


def lead(controller: str) -> Command:
    return Command("lead", lambda store: store.lead(controller), _nothing)


def tick(fence: str) -> Command:
    return Command("tick", lambda store: store.tick(fence), _nothing)


def move_gate(action: str, fence: str, epoch: int) -> Command:
    return Command(
        "move_gate",
        lambda store: store.move_gate(
            action=action, reason="normal", exit_ok=action == "admit", epoch=epoch, fence=fence, figures="{}"
        ),
        _nothing,
    )


def apply(contract: Contract) -> Command:
    """Change the contract; from now on every command goes by the new one."""
    body = contract.for_redis()

    def expect(world: World, answer: str) -> None:
        stored = json.loads(body)
        agree(answer, "unchanged" if stored == world.contract else "moved", "a contract applied")
        world.contract = stored

    return Command("apply", lambda store: store.apply_settings(body, contract.digest(), "ada", "because"), expect)


def kill_switch(*, on: bool) -> Command:
    return Command("kill_switch", lambda store: store.kill_switch(on=on, actor="ada", reason="because"), _nothing)


def approve(run: str, step: str) -> Command:
    """Give a person's word for a step: it moves no job and no gate, and counts once."""

    def expect(world: World, answer: str) -> None:
        live = world.gate.run == run and world.gate.run_state == "running"
        assert (answer == "gone") != live, f"a word for {step} of {run} was answered {answer}, the gate is {world.gate}"

    return Command("approve", lambda store: store.approve(run, step, actor="ada", reason="because"), expect)


def open_run(run: str, trigger: str) -> Command:
    sent = {"runbook": "drain-and-recover", "trigger": trigger, "run": run, "actor": "ada", "reason": "because"}
    return _answering_the_same(
        "open_run", lambda store: store.open_run({**sent, "confirmed": True, "digest": "", "episode": ""})
    )


def claim_run(executor: str, run: str, fence: str) -> Command:
    return Command("claim_run", lambda store: store.claim_run(executor, run, fence), _nothing)


def hello(worker: str) -> Command:
    return Command("hello", lambda store: store.hello(worker), _nothing)


def commit_step(sent: Arguments) -> Command:
    words = {"verb": sent["effect"], "phase": "done", "text": "", "detail": "{}", **sent}
    return _answering_the_same(
        "commit_step",
        lambda store: store.commit_step(words),
        _STEPS[sent["effect"]](words) if sent["effect"] in _STEPS else _nothing,
    )


Expect = Callable[[World, Any], None]


def _answering_the_same(kind: str, send: Callable[[Store], Any], expect: Expect = _nothing) -> Command:
    """Give a command that is the executor's: a repeat gives the first answer and changes no job."""
    first: list[Any] = []

    def once(world: World, answer: Any) -> None:
        if not first:
            first.append(answer)
            expect(world, answer)
        elif isinstance(answer, GateAnswer):
            agree((answer.answer, answer.run), (first[0].answer, first[0].run), f"a repeated {kind}")
        else:
            agree(answer, first[0], f"a repeated {kind}")

    return Command(kind, send, once, repeatable=True)


def _canary(sent: Arguments) -> Expect:
    def expect(world: World, answer: StepAnswer) -> None:
        if answer.answer != "moved":
            return
        job_id = f"canary:{sent['run']}:{sent['class']}:{sent['n']}"
        declared = world.declared(sent["class"])
        assert declared is not None
        assert world.gate.takes_canaries, f"a canary was put into {world.gate}"
        enter(
            world,
            Job(
                job_id=job_id,
                job_class=sent["class"],
                declared=sent["class"],
                cost=declared["cost_class"],
                deadline=world.now + declared["deadline_ms"],
                key=job_id,
                eligible=world.now,
                admitted_at=world.now,
                payload=sent["payload"],
                canary=sent["run"],
            ),
        )

    return expect


def _drain(sent: Arguments) -> Expect:
    def expect(world: World, answer: StepAnswer) -> None:
        if answer.answer in ("moved", "unchanged"):
            settlement.expire(world, world.now + sent["keep_ms"], "drain", answer.expired)

    return expect


_STEPS: Mapping[str, Callable[[Arguments], Expect]] = {"canary": _canary, "drain": _drain}
