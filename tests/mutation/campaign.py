"""Decide which tests are run against which mutant, and keep what came out.

This is a plugin of pytest that takes the place of its loop: pytest finds the tests and their fixtures, and the campaign
decides which of them run, how often and against what.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pytest

from tests.mutation.choosing import LISTED_S, MOST_S, Chooser, Reach
from tests.mutation.crew import Crew, Task, asks_for_redis
from tests.mutation.memory import Known, Reached
from tests.mutation.mutants import Mutant
from tests.mutation.naming import digest_of, functions_named
from tests.mutation.reasons import Reasons
from tests.mutation.report import Fate, Outcome
from tests.mutation.sources import Sources
from tests.mutation.trial import Verdict

# Tests that read the source as text would find any change, whatever it does; of two long ones the pieces are run.
_LEFT_OUT = (
    "test_every_fault_has_its_place",
    "test_a_planted_fault_is_found",
    "test_function_library.py",
    "test_rows_end_as_the_table_says",
    "test_every_command_keeps_the_invariants",
)


def print_at_once(line: str) -> None:
    print(line, flush=True)


@dataclass
class Campaign:
    """Hold what to try and, afterwards, what came out."""

    sources: Sources
    mutants: Sequence[Mutant]
    folder: Path
    processes: int = 2
    bound_s: float = MOST_S
    goes_on: bool = False
    reasons: Reasons = field(default_factory=lambda: Reasons({}))
    say: Callable[[str], None] = print_at_once
    outcomes: list[Outcome] = field(default_factory=list)
    _items: dict[str, pytest.Item] = field(default_factory=dict)

    @cached_property
    def _known(self) -> Known:
        return Known.read(self.folder)

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {name: digest_of(item) for name, item in self._items.items()}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the campaign in place of the tests."""
        self._items = {item.nodeid: item for item in session.items}
        with Crew(session, self._items, self.sources, self.processes) as crew:
            chooser = Chooser(self._reaches(crew))
            self._try_all(crew, chooser)
            self._doubt(crew, chooser)
        return True

    def _usable(self) -> list[str]:
        return [
            name
            for name, item in self._items.items()
            if asks_for_redis(item) and not any(part in name for part in _LEFT_OUT)
        ]

    def _reaches(self, crew: Crew) -> dict[str, Reach]:
        """Look at each test once, or take what was seen of it before."""
        reached = Reached.read(self.folder, self.sources)
        wanted = [name for name in self._usable() if not reached.knows(name, self._digests[name])]
        if wanted:
            self.say(f"{len(wanted)} of {len(self._usable())} tests are looked at for what they reach")
        begun = time.monotonic()
        for done, (task, ending) in enumerate(crew.all(Task((name,), looks=True) for name in wanted), start=1):
            (name,) = task.tests
            passed = ending.verdict is Verdict.PASSED
            reached.note(name, self._digests[name], ending.seconds, ending.marks if passed else ())
            if ending.verdict is Verdict.BROKEN:
                raise RuntimeError(f"{name}: the library with marks does not load: {ending.words}")
            if not passed:
                self.say(f"not used, for it {ending.verdict} with marks: {name} {ending.words[-300:]}")
            if done % 50 == 0:
                self.say(f"{done} of {len(wanted)} looked at, {time.monotonic() - begun:.0f} s")
                reached.write(self.sources)
        near = {name: self.sources.reached_from(functions_named(self._items[name])) for name in self._usable()}
        for name, functions_near in near.items():
            if functions_near:
                seen = reached.tests[name]
                marks = {*seen["marks"], *self.sources.marks_of(functions_near)}
                reached.note(name, self._digests[name], seen["seconds"], tuple(sorted(marks)))
        reached.write(self.sources)
        reaches = {name: replace(one, near=near[name]) for name, one in reached.reaches(self._usable()).items()}
        if not reaches:
            raise RuntimeError("no test reaches the functions")
        self.say(f"{len(reaches)} tests reach the functions, in {sum(one.seconds for one in reaches.values()):.0f} s")
        return reaches

    def _left_to_try(self, chooser: Chooser) -> list[Mutant]:
        """Learn from what killed before, and take over what stands, where the campaign goes on."""
        left = []
        for mutant in self.sources.mutants:
            if (killer := self._known.killer(mutant)) in chooser.reaches:
                chooser.learn(mutant, killer)
        for mutant in self.mutants:
            stands = self._known.standing(mutant, self.sources.digest_of(mutant), self._digests)
            if self.goes_on and stands is not None:
                self.outcomes.append(stands)
            else:
                left.append(mutant)
        if len(left) < len(self.mutants):
            self.say(f"{len(self.mutants) - len(left)} are known to be killed, {len(left)} are left to try")
        return left

    def _try_all(self, crew: Crew, chooser: Chooser) -> None:
        left = self._left_to_try(chooser)
        begun = time.monotonic()

        def tasks() -> Iterable[Task]:
            for mutant in left:
                most_s = LISTED_S if self.reasons.of(mutant) else self.bound_s
                chosen = chooser.tests_for(mutant, most_s, self._known.killer(mutant))
                if not chosen:
                    self._note(Outcome(mutant, Fate.UNREACHED), begun)
                    continue
                yield Task(tuple(one.test for one in chosen), tuple(one.seconds for one in chosen), mutant)

        for task, ending in crew.all(tasks()):
            assert task.mutant is not None
            if ending.verdict is Verdict.BROKEN:
                raise RuntimeError(f"{task.mutant}: {ending.words}")
            fate = {Verdict.PASSED: Fate.SURVIVED, Verdict.FAILED: Fate.KILLED}.get(ending.verdict, Fate.TIMED_OUT)
            if fate is not Fate.SURVIVED:
                chooser.learn(task.mutant, ending.test)
            ran = len(task.tests) if fate is Fate.SURVIVED else task.tests.index(ending.test) + 1 if ending.test else 0
            reach = len(chooser.reaching(task.mutant))
            words = ending.words[-300:]
            self._note(Outcome(task.mutant, fate, ending.test, ran, reach, words, ending.seconds), begun)

    def _note(self, outcome: Outcome, begun: float) -> None:
        self.outcomes.append(outcome)
        self._known.note(outcome, self.sources.digest_of(outcome.mutant), self._digests.get(outcome.test, ""))
        done = len(self.outcomes)
        if not outcome.killed:
            self.say(f"{outcome.fate} {outcome.mutant} ({outcome.ran} of {outcome.reach} tests)")
        if done % 25 == 0 or done == len(self.mutants):
            killed = sum(one.killed for one in self.outcomes)
            self.say(f"{done} of {len(self.mutants)} tried, {killed} killed, {time.monotonic() - begun:.0f} s")

    def _doubt(self, crew: Crew, chooser: Chooser) -> None:
        """Run every test that killed once more on the unaltered library: one that fails there proves nothing."""
        killers = sorted({one.test for one in self.outcomes if one.killed and one.test})
        tasks = (Task((name,), (chooser.reaches[name].seconds,)) for name in killers)
        failing = {task.tests[0] for task, ending in crew.all(tasks) if ending.verdict is not Verdict.PASSED}
        for name in failing:
            self.say(f"fails on the unaltered library too, so what it killed is in doubt: {name}")
        for place, one in enumerate(self.outcomes):
            if one.test in failing:
                self.outcomes[place] = doubtful = replace(one, fate=Fate.DOUBTFUL)
                self._known.note(doubtful, self.sources.digest_of(one.mutant), "")
