"""Processes that carry out tasks, each with a Redis of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

from sluicegate import functions
from tests.mutation.mutants import Mutant
from tests.mutation.sources import Sources
from tests.mutation.trial import Ending, mapped, ready, tried

MAP_BOUND_S = 30.0  # a test that takes longer than this to be looked at is not used
# Of these one runs in each process before all trials, for the table that it makes stays; beside it one that uses Redis.
_FIRST = "test_some_rows_end_as_the_table_says"


@dataclass(frozen=True)
class Task:
    """Ask a process to look at a test (without a mutant), or to run tests against a mutant or the unaltered library."""

    tests: tuple[str, ...]
    seconds: tuple[float, ...] = ()
    mutant: Mutant | None = None
    looks: bool = False


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
        asking = [item for item in items.values() if asks_for_redis(item)]
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


def asks_for_redis(item: pytest.Item) -> bool:
    return bool({"server", "redis_server"} & set(getattr(item, "fixturenames", ()))) and "valkey" not in item.name


def _carried_out(bench: Any, items: dict[str, pytest.Item], sources: Sources, task: Task) -> Ending:
    chosen = [items[name] for name in task.tests]
    if task.looks:
        return mapped(bench, chosen[0], sources.marked_library(), MAP_BOUND_S)
    body = sources.with_mutant(task.mutant) if task.mutant else functions.body()
    begun = time.monotonic()
    ending = tried(bench, chosen, task.seconds, body)
    return replace(ending, seconds=time.monotonic() - begun)
