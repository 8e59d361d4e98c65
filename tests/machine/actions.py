"""What the rules have in common: how a producer, a worker, a person or the controller does one thing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from sluicegate.contract import Dispatch
from sluicegate.job import CallKind, Outcome
from sluicegate.job import Job as Handed
from sluicegate.submission import Submission
from tests.machine import commands
from tests.machine.commands import Command
from tests.machine.contract import CHANGES, COSTLY, LIMITED, PLAIN, UNDECLARED, UNSAFE, machine_contract
from tests.machine.driver import Driver, Lab
from tests.machine.executor import Executor

T = TypeVar("T")

WORKERS = ("w1", "w2", "w3")


class Actions(RuleBasedStateMachine):
    """Act on one queue; `lab` is the server, `driver` what sends the commands and checks what came of them."""

    lab: ClassVar[Lab]
    driver: ClassVar[type[Driver]] = Driver

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(1)
        self._submitted: list[dict[str, Any]] = []
        self._handles: list[tuple[str, Handed]] = []
        self._repeatable: list[Command] = []
        self._last_claim: dict[str, Command] = {}
        self._controller_fence = "0"

    def _open_anew(self, strict: bool, dispatch: Dispatch) -> None:
        self._contract = partial(machine_contract, strict=strict, dispatch=dispatch)
        self.drive = self.driver(self.lab, machine_contract(strict=strict, dispatch=dispatch))
        self._executor = Executor(self.drive, self._do, self._claim, self._settlement, self._next)
        self._look("admit")

    def _next(self, start: str) -> str:
        return f"{start}{next(self._numbers)}"

    def _do(self, command: Command) -> Any:
        answer = self.drive.run(command)
        if command.repeatable:
            self._repeatable.append(command)
        return answer

    def _repeat_the_last(self, times: int) -> None:
        for command in self._repeatable[-1:] * times:
            self._repeat(command)

    def _repeat(self, command: Command) -> None:
        self.drive.run(command)
        self.drive.count("repeat")

    def _submission(
        self, job_class: str, deadline: int, cost: str, *, key: str = "", payload: str = "{}"
    ) -> dict[str, Any]:
        name = self._next("j")
        asked = Submission(key or name, job_class, payload, cost_class=cost, deadline_in_ms=deadline)
        named = {"id": asked.job_id, "key": asked.idempotency_key, "fp": asked.fingerprint, "payload": payload}
        return {**named, "class": job_class, "cost_class": cost, "deadline_ms": 0, "deadline_in_ms": deadline}

    def _admit(self, *jobs: dict[str, Any]) -> None:
        self._submitted += jobs
        self._do(commands.admit(list(jobs)))

    def _claim(self, worker: str, slots: int) -> Sequence[Handed]:
        command = commands.claim(worker, self._next("r"), slots)
        jobs: Sequence[Handed] = self._do(command).jobs
        self._last_claim[worker] = command
        self._handles += [(worker, job) for job in jobs]
        return jobs

    def _held(self, *, canaries: bool = True) -> list[tuple[str, Handed]]:
        """Give what some worker holds under the current fence: running, or unknown since its lease ended."""
        world = self.drive.world
        return [
            (worker, job)
            for worker, job in self._handles
            if (known := world.jobs.get(job.job_id))
            and known.fence == job.fence
            and known.state in ("running", "unknown")
            and (canaries or not known.canary)
        ]

    def _settlement(
        self, handle: tuple[str, Handed], outcome: Outcome, delay: int, kind: CallKind | None, latency: int
    ) -> Command:
        worker, job = handle
        call = {"call": {"kind": kind.value, "status": 0, "latency_ms": latency}} if kind is not None else {}
        base = {"worker": worker, "id": job.job_id, "fence": str(job.fence), "request": self._next("s")}
        return commands.settle({**base, "outcome": outcome.value, "delay_ms": delay, **call})

    def _open(self, wanted: bool) -> None:
        """Let a person open the gate where it is not, and the controller look."""
        if wanted and self.drive.gate.effective != "admit":
            self._do(commands.order("open_end_run"))
        silent_ms = self.drive.world.timings["controller_silent_ms"]
        if wanted and self.drive.clock.now_ms - self.drive.gate.seen_ms > silent_ms:
            self._look("hold")

    def _start(self, worker: str, job_class: str, renewed: bool) -> Sequence[Handed]:
        """Let a worker claim and say what it will do; where nothing waits, a producer brings something first."""
        if not any(self.drive.world.ordinary("ready")):
            self._open(True)
            self._admit(self._submission(job_class, 0, ""))
        jobs = self._claim(worker, 1)
        for job in jobs:
            self._do(commands.intent(worker, job.job_id, job.fence))
            if renewed:
                self._do(commands.renew(worker, {job.job_id: job.fence}))
        return jobs

    def _submit_in_a_ramp(self, number: int) -> None:
        """Go on until the ramp has begun, then let producers come."""
        self._recover(11, number, until_ramp=True)
        if self.drive.gate.ramp is not None:
            self._admit(*(self._submission(PLAIN, 0, "") for _ in range(3)))

    def _overtake(self, job_class: str, outcome: Outcome, lost: int) -> str:
        """Let a job be requeued and started again, then its first worker settle it; give the job's key."""
        for job in self._start("w1", job_class, True):
            self._do(self._settlement(("w1", job), Outcome.REQUEUED, 0, None, 10))
            for _ in range(2):
                self._start("w2", job_class, False)
            self._do(self._settlement(("w1", job), outcome, 0, CallKind.OK, 10))
            self._repeat_the_last(lost)
            return job.idempotency_key
        return ""

    def _crowd(self, job_class: str, count: int) -> None:
        """Fill every place, where one job waits for its next try already, then claim more than may run."""
        for job in self._start("w2", PLAIN if job_class == UNDECLARED else job_class, False):
            self._do(self._settlement(("w2", job), Outcome.NOT_EXECUTED, 4_000, CallKind.REFUSED, 10))
        self._admit(*(self._submission(job_class, 0, "") for _ in range(count)))
        self._claim("w3", 3)

    def _lost(self) -> Sequence[Handed]:
        """Start something, and let its lease run out."""
        jobs = self._start("w1", UNSAFE, True)
        self.drive.wait(31_000)
        self._do(commands.sweep())
        return jobs

    def _race_submissions(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        self.drive.race(commands.admit([first]), commands.admit([second]))
        self._submitted += [first, second]

    def _race_claims(self, slots: int) -> list[tuple[str, Handed]]:
        pair = [commands.claim(worker, self._next("r"), slots) for worker in WORKERS[:2]]
        answers = self.drive.race(pair[0], pair[1])
        taken = [(worker, job) for worker, answer in zip(WORKERS, answers, strict=False) for job in answer.jobs]
        self._handles += taken
        return taken

    def _clear(self) -> None:
        """Let every deadline pass."""
        self.drive.wait(181_000)
        self._do(commands.sweep())
        self._open(True)

    def _use_up_the_retries(self, job_class: str) -> list[str]:
        for _ in range(3):
            for job in self._start("w3", job_class, False):
                self._do(self._settlement(("w3", job), Outcome.RETRY, 0, CallKind.TIMEOUT, 10))
        return self._aside("blocked")[-1:]

    def _claim_with_left(self, job_class: str, left_ms: int) -> None:
        self._open(True)
        self._admit(self._submission(job_class, 12_000, ""))
        self.drive.wait(12_000 - left_ms)
        self._claim("w2", 4)

    def _crash(self, worker: str) -> None:
        """A worker stops for ever wherever it was; what it still sent may arrive late."""
        self.drive.count("crash")
        self._last_claim.pop(worker, None)
        self._handles = [(f"{owner}-dead" if owner == worker else owner, job) for owner, job in self._handles]

    def _aside(self, *states: str) -> list[str]:
        return [job.job_id for job in self.drive.world.jobs.values() if job.state in states]

    def _hold_something(self, number: int) -> None:
        if not self._held(canaries=False):
            self._start(WORKERS[number % 3], (PLAIN, UNSAFE, COSTLY, LIMITED)[number % 4], number % 5 == 0)

    def _apply(self, number: int) -> None:
        """Let a person change the contract, or put it back as it was."""
        self._do(commands.apply(self._contract(changes=CHANGES[number % len(CHANGES)])))

    def _restore(self) -> None:
        """The server is lost, and what a snapshot holds comes back; workers go on with what they held."""
        self.drive.restore()
        self._last_claim.clear()

    def _throw_the_switch(self) -> None:
        """Forbid runs, let an alert ask for one in vain, and allow them again."""
        self._do(commands.kill_switch(on=True))
        live = self.drive.gate.run
        answer = self._do(commands.open_run(self._next("run-"), "webhook"))
        assert live or answer.answer != "moved", f"the kill switch let a run begin: {answer}"
        self._do(commands.kill_switch(on=False))

    def _say_yes(self, number: int) -> None:
        """Let a person say yes to a step, of the live run or of one that is gone."""
        gate = self.drive.gate
        step = ("fix", "canary", "approve", "recover")[number % 4]
        if gate.run and number % 3:
            self._executor.begin(step)
        self._do(commands.approve(gate.run or "run-0", step))
        self._do(commands.approve(gate.run or "run-0", step))

    def _outlive_the_retention(self, job_class: str, outcome: Outcome) -> None:
        """End a job, let its record go, and submit the same again: nobody knows it any more."""
        self._open(True)
        sent = self._submission(job_class, 0, "")
        self._admit(sent)
        for job in self._claim("w1", 1):
            self._do(self._settlement(("w1", job), outcome, 0, CallKind.OK, 10))
        self.drive.wait(901_000)
        self._do(commands.sweep())
        self._do(commands.promote())
        self._open(True)
        self._admit(sent)
        self.drive.count("outlive")

    def _look(self, action: str) -> None:
        """Let the controller look once, as it does every tick."""
        _, fence = self._do(commands.lead("controller"))
        self._do(commands.tick(fence))
        self._do(commands.move_gate(action, fence, self.drive.gate.epoch))

    def _recover(self, steps: int, number: int, *, until_ramp: bool = False) -> None:
        for _ in range(steps):
            if until_ramp and self.drive.gate.ramp is not None:
                return
            self._executor.step(number)


def pick(values: Sequence[T], number: int) -> T | None:
    return values[number % len(values)] if values else None
