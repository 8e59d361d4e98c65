"""The state machine: what producers, workers, sweepers, people, the controller and an executor may do in any order.

No draw depends on what the queue holds: a number picks among what there is, and where there is nothing the rule does
nothing. So a run that a race has turned can still be repeated.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from sluicegate.contract import Dispatch
from sluicegate.job import CallKind, Outcome
from tests.machine import commands
from tests.machine.actions import WORKERS, pick
from tests.machine.contract import COST_CLASS, COSTLY, LIMITED, PLAIN, UNDECLARED, UNSAFE
from tests.machine.openings import OPENINGS, Openings

CLASSES = st.sampled_from((PLAIN, PLAIN, UNSAFE, UNSAFE, COSTLY, COSTLY, COSTLY, LIMITED, LIMITED, LIMITED, UNDECLARED))
WORKED = st.sampled_from((PLAIN, UNSAFE, COSTLY, LIMITED))
# ms: the class's own, hopeless, soon, and a good time.
DEADLINES = st.sampled_from((0, 0, 0, 1_500, 2_200, 12_000, 40_000))
DELAYS = st.sampled_from((0, 0, 3, 4_000, 50_000, 70_000))
# ms: nothing much, a back-off, a refusal's wait, a lease, a silent controller, a retention.
WAITS = st.sampled_from((1, 3, 900, 2_100, 4_000, 15_100, 15_100, 30_000, 31_000, 31_000, 46_000, 91_000, 700_000))
NUMBERS = st.integers(0, 1 << 12)
LATENCIES = st.sampled_from((10, 10, 10, 5_000))
KINDS = st.sampled_from((None, *CallKind))
COSTS = st.sampled_from(("", "", "", "", COST_CLASS, "no-such-cost"))
OPENED = st.sampled_from((True, True, False))
# How many answers are lost before one is heard.
LOST = st.sampled_from((0, 0, 1, 2))
OUTCOMES = st.sampled_from(
    (*Outcome, Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.RETRY, Outcome.RETRY, Outcome.UNKNOWN)
)
RECONCILED = st.sampled_from(("succeeded", "failed", "retry", "retry", "block"))
SOURCES = st.sampled_from(("person", "person", "ledger", "http"))
ORDERS = st.sampled_from(
    ("open", "open_end_run", "open_end_run", "drain", "reject", "hold", "release", "abort", "acknowledge")
)
ACTIONS = st.sampled_from(("admit", "admit", "admit", "hold", "reject_new", "drain", "roll_back"))
EDITS = st.sampled_from(
    (
        ("SET", "drain_state", "drain"), ("SET", "drain_state", "reject_new"), ("SET", "drain_state", "admit"),
        ("SET", "drain_state", "recovering"), ("SET", "admission", "closed"), ("SET", "admission", "open"),
        ("SET", "drain_state", "opne"), ("DEL", "control:gate"),
    )
)  # fmt: skip


class QueueMachine(Openings):
    """Drive one queue; the server is set on a subclass for each."""

    @initialize(
        strict=st.sampled_from((True, True, False)),
        dispatch=st.sampled_from(Dispatch),
        openings=st.permutations(OPENINGS),
    )
    def open_queue(self, strict: bool, dispatch: Dispatch, openings: list[str]) -> None:
        """Open the queue, and begin with what the rules alone would do too rarely."""
        self._open_anew(strict, dispatch)
        for opening in openings:
            self._begin_with(opening)

    # Producers.

    @rule(job_class=CLASSES, deadline=DEADLINES, cost=COSTS, opened=OPENED)
    def submit_new(self, job_class: str, deadline: int, cost: str, opened: bool) -> None:
        self._open(opened)
        self._admit(self._submission(job_class, deadline, cost))

    @rule(number=NUMBERS, job_class=CLASSES, payload=st.sampled_from(("{}", "{}", "{}", "[]")), opened=OPENED)
    def submit_under_few_keys(self, number: int, job_class: str, payload: str, opened: bool) -> None:
        self._open(opened)
        self._admit(self._submission(job_class, 0, "", key=f"key-{number % 4}", payload=payload))

    @rule(job_classes=st.lists(CLASSES, min_size=2, max_size=4), deadline=DEADLINES)
    def submit_many(self, job_classes: list[str], deadline: int) -> None:
        self._admit(*(self._submission(job_class, deadline, "") for job_class in job_classes))

    @rule(job_class=st.sampled_from((PLAIN, COSTLY, LIMITED)), count=st.integers(4, 7), cleared=st.booleans())
    def submit_a_crowd(self, job_class: str, count: int, cleared: bool) -> None:
        if cleared:
            self.drive.wait(61_000)
            self._do(commands.sweep())
        self._open(True)
        self._crowd(job_class, count)

    @rule(job_class=CLASSES, ms=st.sampled_from((29_000, 30_001, 46_000)))
    def come_back_when_due(self, job_class: str, ms: int) -> None:
        """A producer that was refused asks again, too early or in time."""
        self._do(commands.order("reject"))
        sent = self._submission(job_class, 0, "")
        self._admit(sent)
        self.drive.wait(ms)
        self._open(True)
        self._admit(sent)

    @rule(job_class=CLASSES, deadline=st.sampled_from((1, 1_500, 2_000)))
    def submit_too_late(self, job_class: str, deadline: int) -> None:
        self._open(True)
        self._admit(*(self._submission(job_class, deadline, "") for _ in range(2)))

    @rule(job_class=CLASSES)
    def submit_unwatched(self, job_class: str) -> None:
        self._open(True)
        self.drive.wait(91_000)
        self._admit(self._submission(job_class, 0, ""))

    @rule(number=NUMBERS, conflicting=st.sampled_from((False, False, True)))
    def submit_again(self, number: int, conflicting: bool) -> None:
        if (sent := pick(self._submitted, number)) is not None:
            self._admit({**sent, "fp": "another"} if conflicting else sent)

    @rule(number=NUMBERS, job_class=CLASSES)
    def submit_under_the_id_of_another(self, number: int, job_class: str) -> None:
        if (sent := pick(self._submitted, number)) is not None:
            self._admit({**self._submission(job_class, 0, ""), "id": sent["id"], "key": sent["key"]})

    # Workers.

    @rule(worker=st.sampled_from(WORKERS), slots=st.sampled_from((0, 1, 1, 2, 4)), lost=LOST)
    def claim(self, worker: str, slots: int, lost: int) -> None:
        self._claim(worker, slots)
        self._repeat_the_last(lost)

    @rule(worker=st.sampled_from(WORKERS), job_class=WORKED, renewed=st.booleans(), crashes=st.booleans())
    def start_work(self, worker: str, job_class: str, renewed: bool, crashes: bool) -> None:
        self._start(worker, job_class, renewed)
        if crashes:
            self._crash(worker)

    @rule(job_class=WORKED, outcome=OUTCOMES, lost=LOST, shown=st.booleans())
    def overtake(self, job_class: str, outcome: Outcome, lost: int, shown: bool) -> None:
        """A worker that was slow settles what another one has started since; the provider may show both effects."""
        key = self._overtake(job_class, outcome, lost)
        if shown and key:
            self._do(commands.duplicate(key))

    @rule(job_class=WORKED, outcome=RECONCILED, source=SOURCES)
    def use_up_the_retries(self, job_class: str, outcome: str, source: str) -> None:
        for job_id in self._use_up_the_retries(job_class):
            self._do(commands.reconcile(job_id, outcome, source))

    @rule(job_class=WORKED, left=st.sampled_from((1_998, 2_010)))
    def claim_too_late(self, job_class: str, left: int) -> None:
        self._claim_with_left(job_class, left)

    @rule(worker=st.sampled_from(WORKERS), outcome=OUTCOMES, delay=DELAYS, kind=KINDS, job_class=WORKED)
    def work(self, worker: str, outcome: Outcome, delay: int, kind: CallKind | None, job_class: str) -> None:
        for job in self._start(worker, job_class, delay > 0):
            self._do(self._settlement((worker, job), outcome, delay, kind, 10))

    @rule(number=NUMBERS)
    def record_an_intent(self, number: int) -> None:
        if (handle := pick(self._handles[-4:], number)) is not None:
            self._do(commands.intent(handle[0], handle[1].job_id, handle[1].fence))

    @rule(number=NUMBERS, outcome=OUTCOMES, delay=DELAYS, kind=KINDS, latency=LATENCIES, lost=LOST)
    def settle(self, number: int, outcome: Outcome, delay: int, kind: CallKind | None, latency: int, lost: int) -> None:
        self._hold_something(number)
        if (handle := pick(self._held(), number)) is not None:
            self._do(self._settlement(handle, outcome, delay, kind, latency))
            self._repeat_the_last(lost)

    @rule(number=NUMBERS, outcome=OUTCOMES, lost=LOST)
    def settle_late(self, number: int, outcome: Outcome, lost: int) -> None:
        if (handle := pick(self._handles[-12:], number)) is not None:
            self._do(self._settlement(handle, outcome, 0, CallKind.OK, 10))
            self._repeat_the_last(lost)

    @rule(count=st.integers(2, 5))
    def work_well(self, count: int) -> None:
        for _ in range(count):
            jobs = self._claim("w1", 1)
            for job in jobs:
                self._do(self._settlement(("w1", job), Outcome.SUCCEEDED, 0, CallKind.OK, 10))

    @rule(number=NUMBERS, only_held=st.sampled_from((True, True, False)))
    def renew(self, number: int, only_held: bool) -> None:
        self._hold_something(number)
        handles = self._held() if only_held else self._handles[-6:]
        if (handle := pick(handles, number)) is not None:
            leases = {job.job_id: job.fence for owner, job in handles if owner == handle[0]}
            self._do(commands.renew(handle[0], leases))

    @rule(worker=st.sampled_from(WORKERS), job_class=WORKED, ms=st.sampled_from((3, 31_000)))
    def crash_before_the_intent(self, worker: str, job_class: str, ms: int) -> None:
        self._open(True)
        self._admit(self._submission(job_class, 0, ""))
        self._claim(worker, 1)
        self._crash(worker)
        self.drive.wait(ms)
        self._do(commands.sweep())

    @rule(worker=st.sampled_from(WORKERS))
    def crash(self, worker: str) -> None:
        self._crash(worker)

    # What goes by itself.

    @rule()
    def sweep(self) -> None:
        self._do(commands.sweep())

    @rule()
    def promote(self) -> None:
        self._do(commands.promote())

    @rule(ms=WAITS)
    def wait(self, ms: int) -> None:
        self.drive.wait(ms)

    @rule(job_class=WORKED, outcome=RECONCILED, source=SOURCES, late=st.sampled_from((None, *Outcome)))
    def lose_a_lease(self, job_class: str, outcome: str, source: str, late: Outcome | None) -> None:
        """Whoever holds jobs stops renewing; the worker comes back, or somebody finds out what became of one."""
        jobs = self._start("w1", job_class, True)
        if late is None:
            self._crash("w1")
        self.drive.wait(31_000)
        self._do(commands.sweep())
        for job in jobs:
            if late is not None:
                self._do(self._settlement(("w1", job), late, 0, CallKind.OK, 10))
            # A resolver names the fence it looked at; here it looked before this start, or after it.
            fence = {"ledger": job.fence, "http": job.fence - 1}.get(source)
            self._do(commands.reconcile(job.job_id, outcome, source, fence))

    # People, resolvers, the controller, an executor, hands.

    @rule(number=NUMBERS, outcome=RECONCILED, source=SOURCES)
    def reconcile(self, number: int, outcome: str, source: str) -> None:
        if (job_id := pick(self._aside("unknown", "blocked") or list(self.drive.world.jobs), number)) is not None:
            self._do(commands.reconcile(job_id, outcome, source))

    @rule(number=NUMBERS)
    def confirm_a_duplicate(self, number: int) -> None:
        if (sent := pick(self._submitted, number)) is not None:
            self._do(commands.duplicate(sent["key"]))

    @rule(name=ORDERS)
    def order(self, name: str) -> None:
        self._do(commands.order(name))

    @rule(action=ACTIONS)
    def control(self, action: str) -> None:
        self._look(action)

    @rule(steps=st.integers(1, 4), number=NUMBERS)
    def recover_a_little(self, steps: int, number: int) -> None:
        self._recover(steps, number)

    @rule(number=NUMBERS)
    def recover(self, number: int) -> None:
        self._recover(6, number)

    @rule(number=NUMBERS)
    def submit_in_a_ramp(self, number: int) -> None:
        self._submit_in_a_ramp(number)

    @rule(words=EDITS, looks=st.booleans())
    def edit_by_hand(self, words: tuple[str, ...], looks: bool) -> None:
        self.drive.edit(*words)
        if looks:
            self._look("hold")

    @rule(words=EDITS, job_class=CLASSES)
    def edit_and_submit(self, words: tuple[str, ...], job_class: str) -> None:
        self._open(True)
        self.drive.edit(*words)
        self._admit(self._submission(job_class, 0, ""))

    @rule(words=EDITS, opened=st.booleans())
    def edit_and_claim(self, words: tuple[str, ...], opened: bool) -> None:
        self._open(opened)
        self.drive.edit(*words)
        self._claim("w1", 1)

    @rule(number=NUMBERS)
    def apply_another_contract(self, number: int) -> None:
        self._apply(number)

    @rule()
    def lose_the_server_and_restore(self) -> None:
        self._restore()

    @rule()
    def throw_the_kill_switch(self) -> None:
        self._throw_the_switch()

    @rule(number=NUMBERS)
    def say_yes_to_a_step(self, number: int) -> None:
        self._say_yes(number)

    @rule(job_class=WORKED, outcome=st.sampled_from((Outcome.SUCCEEDED, Outcome.FAILED)))
    def outlive_the_retention(self, job_class: str, outcome: Outcome) -> None:
        self._outlive_the_retention(job_class, outcome)

    # Lost answers and races.

    @rule(times=st.integers(1, 3))
    def repeat_the_last(self, times: int) -> None:
        """The answer was lost: the same request comes again."""
        self._repeat_the_last(times)

    @rule(number=NUMBERS)
    def repeat_an_earlier_one(self, number: int) -> None:
        """A request that lay on the way for long arrives again."""
        timeless = [command for command in self._repeatable[-8:] if command.kind in ("admit", "settle", "intent")]
        if (command := pick([*timeless, *self._last_claim.values()], number)) is not None:
            self._repeat(command)

    @rule(job_class=CLASSES, other_class=CLASSES, kind=st.sampled_from(("same", "conflict", "places")))
    def race_submissions(self, job_class: str, other_class: str, kind: str) -> None:
        first = self._submission(job_class, 0, "")
        second = {"same": first, "conflict": {**first, "fp": "other"}}.get(kind, self._submission(other_class, 0, ""))
        self._race_submissions(first, second)

    @rule(slots=st.integers(1, 3))
    def race_claims(self, slots: int) -> None:
        self._race_claims(slots)

    @rule(number=NUMBERS, outcome=OUTCOMES, other=OUTCOMES)
    def race_settlements(self, number: int, outcome: Outcome, other: Outcome) -> None:
        self._hold_something(number)
        if (handle := pick(self._held(canaries=False), number)) is not None:
            pair = [self._settlement(handle, which, 0, CallKind.OK, 10) for which in (outcome, other)]
            self.drive.race(*pair)

    @rule(number=NUMBERS, outcome=OUTCOMES, rival=st.sampled_from(("sweep", "renew", "reconcile", "drain", "claim")))
    def race_a_settlement(self, number: int, outcome: Outcome, rival: str) -> None:
        self._hold_something(number)
        if (handle := pick(self._held(canaries=False), number)) is None:
            return
        worker, job = handle
        against = {
            "sweep": commands.sweep(),
            "renew": commands.renew(worker, {job.job_id: job.fence}),
            "reconcile": commands.reconcile(job.job_id, "retry", "person"),
            "drain": commands.order("drain"),
            "claim": commands.claim("racer", self._next("r"), 1),
        }[rival]
        _, answer = self.drive.race(self._settlement(handle, outcome, 0, None, 10), against)
        if rival == "claim":
            self._handles += [("racer", claimed) for claimed in answer.jobs]

    @rule()
    def race_a_claim_against_a_drain(self) -> None:
        answer, _ = self.drive.race(commands.claim("racer", self._next("r"), 2), commands.order("drain"))
        self._handles += [("racer", job) for job in answer.jobs]
