"""What the rules alone would do too rarely: each run of the machine begins with all of these, in some order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sluicegate.job import CallKind, Outcome
from tests.machine import commands
from tests.machine.actions import Actions
from tests.machine.contract import COSTLY, LIMITED, PLAIN, UNDECLARED, UNSAFE


class Openings(Actions):
    """Bring a queue into a state of interest; the gate is open before each."""

    def _edit(self) -> None:
        for words in (("SET", "admission", "closed"), ("SET", "drain_state", "drain"), ("SET", "drain_state", "admit")):
            self.drive.edit(*words)
            self._claim("w1", 1)
            self._admit(self._submission(PLAIN, 0, ""))

    def _lose_an_answer_and_crash(self) -> None:
        self._admit(*(self._submission(PLAIN, 0, "") for _ in range(2)))
        self._claim("w1", 1)
        self._repeat_the_last(1)
        self._crash("w1")
        self._start("w2", PLAIN, True)
        self._crash("w2")

    def _begin_a_ramp(self) -> None:
        self._submit_in_a_ramp(1)
        self._do(commands.order("abort"))
        self._submit_in_a_ramp(2)
        self._do(commands.order("abort"))
        self._recover(3, 3)

    def _fall_silent(self) -> None:
        self.drive.wait(91_000)
        self._admit(self._submission(PLAIN, 0, ""))

    def _lose_a_lease(self) -> None:
        for job in self._lost():
            self._crash("w1")
            self._do(commands.reconcile(job.job_id, "retry", "http"))

    def _come_back_late(self) -> None:
        for job in self._lost():
            self._do(self._settlement(("w1", job), Outcome.SUCCEEDED, 0, CallKind.OK, 10))
            self._do(commands.duplicate(job.idempotency_key))

    def _be_overtaken(self) -> None:
        self._do(commands.duplicate(self._overtake(UNSAFE, Outcome.SUCCEEDED, 1) or "key-2"))

    def _block(self) -> None:
        self._clear()
        for job_id in self._use_up_the_retries(PLAIN):
            self._do(commands.reconcile(job_id, "retry", "ledger"))
            self._do(commands.reconcile(job_id, "retry", "person"))

    def _come_near_the_margin(self) -> None:
        self._clear()
        self._admit(self._submission(PLAIN, 1_500, ""))
        self._claim_with_left(PLAIN, 1_998)

    def _conflict(self) -> None:
        sent = self._submission(UNSAFE, 0, "", key="key-1")
        self._admit(sent, {**sent, "fp": "another"})
        self._do(commands.duplicate("key-1"))

    def _fill(self) -> None:
        self._clear()
        self._crowd(PLAIN, 6)
        self.drive.wait(4_001)
        self._do(commands.promote())
        self._repeat_the_last(1)

    def _fill_a_cost_class(self) -> None:
        self._clear()
        self._crowd(COSTLY, 6)

    def _fill_a_class(self) -> None:
        self._clear()
        self._crowd(LIMITED, 6)

    def _ask_for_what_is_not_declared(self) -> None:
        self._crowd(UNDECLARED, 6)

    def _race(self) -> None:
        self._clear()
        sent = self._submission(PLAIN, 0, "")
        self._race_submissions(sent, sent)
        self._race_submissions(self._submission(UNSAFE, 0, ""), self._submission(COSTLY, 0, ""))
        for worker, job in self._race_claims(1):
            against = commands.renew(worker, {job.job_id: job.fence})
            self.drive.race(self._settlement((worker, job), Outcome.REQUEUED, 0, None, 10), against)

    def _lose_the_server(self) -> None:
        self._start("w1", UNSAFE, True)
        self._admit(self._submission(PLAIN, 0, ""), self._submission("no-such-class", 0, ""))
        self._restore()

    def _change_the_contract(self) -> None:
        for number in (1, 4):
            self._apply(number)
            self._admit(self._submission(PLAIN, 0, ""))
        self._apply(0)

    def _throw_it(self) -> None:
        self._throw_the_switch()
        self._recover(2, 1)
        for number in (1, 2):
            self._say_yes(number)

    def _forget(self) -> None:
        for job_class, outcome in ((PLAIN, Outcome.SUCCEEDED), (UNSAFE, Outcome.FAILED), (LIMITED, Outcome.SUCCEEDED)):
            self._outlive_the_retention(job_class, outcome)

    def _begin_with(self, name: str) -> None:
        self._open(True)
        _OPENINGS[name](self)


_OPENINGS: Mapping[str, Callable[[Openings], None]] = {
    "edit": Openings._edit,
    "crash": Openings._lose_an_answer_and_crash,
    "ramp": Openings._begin_a_ramp,
    "silence": Openings._fall_silent,
    "lease": Openings._lose_a_lease,
    "late": Openings._come_back_late,
    "overtaken": Openings._be_overtaken,
    "blocked": Openings._block,
    "margin": Openings._come_near_the_margin,
    "conflict": Openings._conflict,
    "full": Openings._fill,
    "full cost class": Openings._fill_a_cost_class,
    "full class": Openings._fill_a_class,
    "race": Openings._race,
    "lost": Openings._lose_the_server,
    "applied": Openings._change_the_contract,
    "switch": Openings._throw_it,
    "forgotten": Openings._forget,
    "undeclared": Openings._ask_for_what_is_not_declared,
}
OPENINGS = tuple(_OPENINGS)
