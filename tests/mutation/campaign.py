"""Try mutants on several processes at once: each has its own Redis, and tells this one what came out.

This is a plugin of pytest that takes the place of its loop: pytest finds the tests and their fixtures, and the campaign
decides which of them run, how often and against what.
"""

from __future__ import annotations

import hashlib
import inspect
import multiprocessing
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

from sluicegate import functions
from tests.mutation.choosing import LISTED_S, MOST_S, Chooser, Reach
from tests.mutation.memory import Known, Reached
from tests.mutation.mutants import Mutant
from tests.mutation.reasons import Reasons
from tests.mutation.report import Fate, Outcome
from tests.mutation.sources import Sources
from tests.mutation.trial import Ending, Verdict, mapped, ready, tried

MAP_BOUND_S = 30.0  # a test that takes longer than this to be looked at is not used
# Of these one runs in each process before all trials, for the table that it makes stays; beside it one that uses Redis.
_FIRST = "test_some_rows_end_as_the_table_says"
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


@dataclass(frozen=True)
class Task:
    """Ask a process to look at a test (without a mutant), or to run tests against a mutant or the unaltered library."""

    tests: tuple[str, ...]
    seconds: tuple[float, ...] = ()
    mutant: Mutant | None = None
    looks: bool = False


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
        return {name: _digest_of(item) for name, item in self._items.items()}

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
            if _asks_for_redis(item) and not any(part in name for part in _LEFT_OUT)
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
        for name in self._usable():
            if marks := self.sources.marks_of(_functions_named(self._items[name])):
                reached.note(name, self._digests[name], reached.tests[name]["seconds"], marks)
        reached.write(self.sources)
        reaches = reached.reaches(self._usable())
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


class Crew:
    """Keep some processes busy, each with a Redis of its own."""

    def __init__(
        self, session: pytest.Session, items: dict[str, pytest.Item], sources: Sources, processes: int
    ) -> None:
        self._context = multiprocessing.get_context("fork")
        self._work = (session, items, sources)
        self._processes = processes
        self._crew: list[tuple[Any, Connection]] = []

    def __enter__(self) -> Crew:
        for _ in range(self._processes):
            ours, theirs = self._context.Pipe()
            # A process ends when nobody holds the other end of its pipe, so it must not hold one itself.
            inherited = [ours, *(pipe for _, pipe in self._crew)]
            process = self._context.Process(target=_serve, args=(theirs, inherited, *self._work))
            process.start()
            theirs.close()
            self._crew.append((process, ours))
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self._crew:
            pipe.close()
            process.join(20)
            if process.is_alive():
                process.kill()

    def all(self, tasks: Iterable[Task]) -> Iterable[tuple[Task, Ending]]:
        """Give each task with its ending, in the order in which they end; the next is asked for as one gets free."""
        coming = iter(tasks)
        busy: dict[Connection, Task] = {}
        idle = deque(pipe for _, pipe in self._crew)
        while True:
            while idle and (task := next(coming, None)) is not None:
                pipe = idle.popleft()
                pipe.send(task)
                busy[pipe] = task
            if not busy:
                return
            for ready_pipe in wait(list(busy)):
                assert isinstance(ready_pipe, Connection)
                ending = ready_pipe.recv()
                if isinstance(ending, Exception):
                    raise ending
                idle.append(ready_pipe)
                yield busy.pop(ready_pipe), ending


def _serve(
    pipe: Connection,
    inherited: Sequence[Connection],
    session: pytest.Session,
    items: dict[str, pytest.Item],
    sources: Sources,
) -> None:
    """Carry out tasks until the campaign goes away."""
    for other in inherited:
        other.close()
    try:
        asking = [item for item in items.values() if _asks_for_redis(item)]
        first = [asking[0], *[item for item in asking[1:] if _FIRST in item.name][:1]]
        # No trial runs this one, and it runs nothing: what comes next decides which fixtures stay.
        last = next(item for name, item in items.items() if "valkey" in name)
        bench = ready(session, first, last)
        while True:
            try:
                task: Task = pipe.recv()
            except EOFError:
                break
            pipe.send(_carried_out(bench, items, sources, task))
    except BrokenPipeError:
        pass
    except Exception as error:  # noqa: BLE001 - the campaign ends with it
        pipe.send(RuntimeError(f"a process of the campaign ended: {error!r}"))
    session._setupstate.teardown_exact(None)


def _asks_for_redis(item: pytest.Item) -> bool:
    return bool({"server", "redis_server"} & set(getattr(item, "fixturenames", ()))) and "valkey" not in item.name


def _carried_out(bench: Any, items: dict[str, pytest.Item], sources: Sources, task: Task) -> Ending:
    chosen = [items[name] for name in task.tests]
    if task.looks:
        return mapped(bench, chosen[0], sources.marked_library(), MAP_BOUND_S)
    body = sources.with_mutant(task.mutant) if task.mutant else functions.body()
    begun = time.monotonic()
    ending = tried(bench, chosen, task.seconds, body)
    return replace(ending, seconds=time.monotonic() - begun)


def _functions_named(item: pytest.Item) -> set[str]:
    """Give the words in a test's source, and in that of what it calls, where it asks the library what parts are worth.

    Such a part runs in a script of its own, which no mark outlives.
    """
    assert isinstance(item, pytest.Function)
    module = vars(item.module)
    if not {"value_of", "worth"} & module.keys():
        return set()
    words = _names_in(item.function)
    helpers = [module[word] for word in words if inspect.isfunction(module.get(word))]
    return words.union(*map(_names_in, helpers))


def _names_in(function: Callable[..., object]) -> set[str]:
    return set(re.findall(r"[A-Za-z_][\w.]*", inspect.getsource(function)))


def _digest_of(item: pytest.Item) -> str:
    assert isinstance(item, pytest.Function)
    return hashlib.sha256(inspect.getsource(item.function).encode()).hexdigest()[:16]
