"""The executor of runs: from wherever the gate stands, the next step towards a reopening, one at a time.

It may stop between any two steps and go on later, as an executor that died and came back does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sluicegate.job import CallKind, Job, Outcome
from tests.machine import commands
from tests.machine.commands import Command
from tests.machine.contract import PLAIN
from tests.machine.driver import Driver

_NAME = "executor"
# One canary in so many fails.
_FAILS = 9
_EVERYTHING_MS = 3_600_000


class Executor:
    """Own whichever run is live, and bring it on."""

    def __init__(
        self,
        drive: Driver,
        do: Callable[[Command], Any],
        claim: Callable[[str, int], Sequence[Job]],
        settlement: Callable[[tuple[str, Job], Outcome, int, CallKind | None, int], Command],
        name: Callable[[str], str],
    ) -> None:
        self._drive, self._do, self._claim, self._settlement, self._name = drive, do, claim, settlement, name
        self._run, self._fence = "", ""
        self._canary: Job | None = None

    def step(self, number: int) -> None:
        """Do what comes next; `number` chooses where there is a choice."""
        gate = self._drive.gate
        unacknowledged = gate.confirmed > gate.acknowledged
        if not gate.readable or (unacknowledged and not gate.run):
            self._do(commands.order("open_end_run"))
        elif not gate.run:
            self._do(commands.open_run(self._name("run-"), "person"))
        elif (gate.run, gate.run_fence) != (self._run, self._fence):
            self._own()
        elif not gate.recovery_live:
            self._commit("finish")
        elif gate.stored == "drain":
            if number % 4 == 0:
                self._commit("drain", keep_ms=20_000)
            self._commit("recover")
        elif gate.takes_canaries:
            self._prove(number)
        elif gate.stored == "recovering":
            self._reopen(number)
        else:
            self._widen()

    def begin(self, verb: str) -> None:
        """Write down that a step has begun, where the run is this executor's."""
        gate = self._drive.gate
        if gate.run and (gate.run, gate.run_fence) == (self._run, self._fence):
            self._commit("journal", verb=verb, phase="started")

    def _commit(self, effect: str, **fields: Any) -> str:
        request = self._name("q")
        base = {"executor": _NAME, "run": self._run, "fence": self._fence, "request": request, "seq": 1}
        return str(self._do(commands.commit_step({**base, "effect": effect, **fields})).answer)

    def _own(self) -> None:
        run = self._drive.gate.run
        claim = self._do(commands.claim_run(_NAME, run, self._fence))
        if claim.owned:
            self._run, self._fence = run, claim.fence
            self._commit("journal", verb="fix", phase="started")
        elif claim.run is not None:
            self._drive.wait(15_100)

    def _prove(self, number: int) -> None:
        """Put a canary in, have it claimed, settle it."""
        if self._canary is not None:
            slow = (number + self._drive.gate.canary_ok) % _FAILS == 0
            self._do(self._settlement((_NAME, self._canary), Outcome.SUCCEEDED, 0, CallKind.OK, 5_000 if slow else 10))
            self._canary = None
            return
        if not any(job.canary and job.state == "ready" for job in self._drive.world.jobs.values()):
            self._commit("canary", n=int(self._name("")), payload="{}", **{"class": PLAIN})
        jobs = self._claim(_NAME, 1)
        self._canary = jobs[0] if jobs else None

    def _reopen(self, number: int) -> None:
        for job in self._claim(_NAME, 1):
            self._do(self._settlement((_NAME, job), Outcome.SUCCEEDED, 0, CallKind.OK, 10))
        self._commit("burned_down")
        if self._commit("reopen") != "refused":
            return
        if number % 5 == 0:
            self._commit("rollback", reason="queue_age_not_recovering")
            return
        # What keeps the figures up is a backlog that nobody works on.
        self._drive.wait(31_000)
        self._do(commands.sweep())
        self._commit("drain", keep_ms=_EVERYTHING_MS)

    def _widen(self) -> None:
        self._drive.wait(1_001)
        if self._drive.gate.ramp is not None:
            self._commit("ramp_end" if self._drive.gate.ramp >= 100 else "ramp")
