"""Start, watch and end the processes of one drill, so that none of them outlives it."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from drill.child import Child, ChildDied, ChildFailure, ChildPlan, Listening, last_lines, launch
from drill.folder import create_folder, keep_folder, remove_stale_folders
from drill.ports import BIND_FAILED, free_port
from drill.watchdog import Watchdog, end_survivors
from sluicegate.errors import SluicegateError

START_ATTEMPTS = 5
READY_WITHIN_S = 20.0
STOP_GRACE_S = 3.0
STOP_WITHIN_S = 10.0  # all graces together: after that the rest is killed at once
_POLL_S = 0.02


class NotReady(SluicegateError):
    """Say that a child runs but does not answer in time, with its last words."""

    def __init__(self, name: str, within_s: float, lines: tuple[str, ...]) -> None:
        super().__init__(
            "\n".join((f"The process `{name}` was not ready within {within_s:g} s; its last words:", *lines))
        )


class Children:
    """Own a drill's data folder and processes.

    Call it from one thread, the main one where possible: the kernel's parent-death signal follows the thread that
    started a child, so children started elsewhere rely on the watchdog alone.
    """

    def __init__(self, *, root: Path | None = None, stop_grace_s: float = STOP_GRACE_S) -> None:
        self._root = root
        self._stop_grace_s = stop_grace_s
        self._folder: Path | None = None
        self._watchdog: Watchdog | None = None
        self._children: dict[str, Child] = {}
        self._failures: dict[str, ChildFailure] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Remove what killed drills left, make the data folder and start the watchdog."""
        if self._folder is not None:
            return
        remove_stale_folders(self._root)
        self._folder = create_folder(self._root)
        (self._folder / "logs").mkdir()
        self._watchdog = Watchdog(self._folder.name)
        self._watchdog.start()

    def stop(self, *, keep: bool = False) -> Path | None:
        """End every child, latest first, then remove the folder, or keep it and return its path.

        Safe twice and before start.
        """
        if self._folder is None or self._watchdog is None:
            return None
        deadline = time.monotonic() + STOP_WITHIN_S
        children = tuple(reversed(self._children.values()))
        # All at once but the first, which the others may need to say goodbye to.
        for child in children[:-1]:
            self._ask_to_end(child)
        for child in children:
            self._ask_to_end(child)
            self._see_ended(child, min(self._stop_grace_s, deadline - time.monotonic()))
        end_survivors(self._folder.name, sessions=())
        self._watchdog.stop()
        folder, self._folder, self._watchdog = self._folder, None, None
        self._children.clear()
        if keep:
            return keep_folder(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return None

    @property
    def folder(self) -> Path:
        """Return the drill's data folder; raises before start and after stop."""
        if self._folder is None:
            raise SluicegateError("The drill's data folder exists only between start and stop.")
        return self._folder

    def log_path(self, name: str) -> Path:
        """Return the file that holds a child's stdout and stderr, those of earlier starts included."""
        return self.folder / "logs" / f"{name}.log"

    def pids(self) -> dict[str, int]:
        """Return name → pid of the children that run, in the order of their start."""
        return {name: child.pid for name, child in self._children.items() if not child.has_exited()}

    def is_running(self, name: str) -> bool:
        """Tell whether the child runs (a suspended one does)."""
        return name in self._children and not self._children[name].has_exited()

    def spawn(self, name: str, argv: Sequence[str], *, environment: Mapping[str, str] | None = None) -> int:
        """Start a child under a name that is free and return its pid; it may not be ready yet."""
        return self._launch(self._plan(name, argv, environment)).pid

    def start_listening(
        self,
        name: str,
        argv_for: Callable[[int], Sequence[str]],
        ready: Callable[[int], bool],
        *,
        environment: Mapping[str, str] | None = None,
        port: int | None = None,
        within_s: float = READY_WITHIN_S,
    ) -> int:
        """Start a child that listens, wait until `ready(port)`, and return its port.

        Without `port` a free one is taken, and another up to five times when somebody was faster. Raises ChildDied
        when the child ended for another reason, NotReady when it does not answer in time.
        """
        return self.begin_listening(name, argv_for, ready, environment=environment, port=port, within_s=within_s)()

    def begin_listening(
        self,
        name: str,
        argv_for: Callable[[int], Sequence[str]],
        ready: Callable[[int], bool],
        *,
        environment: Mapping[str, str] | None = None,
        port: int | None = None,
        within_s: float = READY_WITHIN_S,
    ) -> Callable[[], int]:
        """Start a child that listens, as `start_listening`; return what waits until it is ready and gives its port.

        Several begun one after another get ready at the same time.
        """

        def begin() -> tuple[Child, int]:
            chosen = port if port is not None else free_port()
            plan = self._plan(name, argv_for(chosen), environment)
            return self._launch(replace(plan, listening=Listening(chosen, ready))), chosen

        first = begin()

        def wait() -> int:
            child, chosen = first
            for attempt in range(1, START_ATTEMPTS + 1):
                try:
                    self._wait_until_ready(child, within_s)
                except ChildDied as died:
                    lost_the_port = BIND_FAILED.search("\n".join(died.failure.last_lines)) is not None
                    if not lost_the_port or port is not None or attempt == START_ATTEMPTS:
                        raise
                    child, chosen = begin()
                else:
                    return chosen
            raise AssertionError("the last attempt returns or raises")

        return wait

    def restart(self, name: str, *, within_s: float = READY_WITHIN_S) -> int:
        """Start a child again with the same command line (so on the same port), ending it first if it runs."""
        before = self._child(name)
        self.end(name)
        child = self._launch(before.plan)
        self._wait_until_ready(child, within_s)
        return child.pid

    def end(self, name: str) -> None:
        """Ask a child to end (SIGTERM), kill it after the grace; nothing happens when it is gone already."""
        self._end(self._child(name), self._stop_grace_s)

    def kill(self, name: str) -> None:
        """Kill a child (SIGKILL) and all that it started; it can be started again with `restart`."""
        child = self._child(name)
        child.ended_on_purpose = True
        child.signal_group(signal.SIGKILL)
        self._bury(child)

    def suspend(self, name: str) -> None:
        """Stop a child's execution (SIGSTOP): it keeps its sockets and answers nothing."""
        self._child(name).signal_group(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a suspended child go on (SIGCONT)."""
        self._child(name).signal_group(signal.SIGCONT)

    def hang_up(self, name: str) -> None:
        """Ask a child to read its configuration again, where it takes SIGHUP for that."""
        self._child(name).signal_group(signal.SIGHUP)

    def failed(self) -> tuple[ChildFailure, ...]:
        """Return the children that ended without being asked to, the watchdog included."""
        for child in self._children.values():
            if child.has_exited() and not child.ended_on_purpose:
                self._bury(child)
                self._failures[child.plan.name] = child.failure()
        if self._watchdog is not None and (code := self._watchdog.exit_code()) is not None:
            self._failures["watchdog"] = ChildFailure("watchdog", code, ())
        return tuple(self._failures.values())

    def _child(self, name: str) -> Child:
        if name not in self._children:
            known = ", ".join(self._children) or "none"
            raise SluicegateError(f"There is no process named `{name}`.\nStarted so far: {known}.")
        return self._children[name]

    def _plan(self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None) -> ChildPlan:
        if self.is_running(name):
            raise SluicegateError(f"A process named `{name}` runs already, with pid {self._children[name].pid}.")
        return ChildPlan(name, tuple(argv), dict(environment or {}), self.log_path(name), mark=self.folder.name)

    def _launch(self, plan: ChildPlan) -> Child:
        child = launch(plan)
        if self._watchdog is not None:
            self._watchdog.watch(child.pid)
        # A restarted child keeps its place: those that were started after it need it as before.
        self._children[plan.name] = child
        self._failures.pop(plan.name, None)
        return child

    def _end(self, child: Child, grace_s: float) -> None:
        self._ask_to_end(child)
        self._see_ended(child, grace_s)

    def _ask_to_end(self, child: Child) -> None:
        """Ask once: a second SIGTERM would tell some to drop what they hold."""
        if not child.asked_to_end and not child.has_exited():
            child.signal_group(signal.SIGTERM)
            child.signal_group(signal.SIGCONT)  # a suspended one could not act on the SIGTERM
        child.ended_on_purpose = child.asked_to_end = True

    def _see_ended(self, child: Child, grace_s: float) -> None:
        if not child.has_exited():
            child.wait_for_exit(grace_s)
        self._bury(child)

    def _bury(self, child: Child) -> None:
        """Reap a child; the watchdog must forget its session first, for then the number is free for others."""
        if child.process.returncode is None:
            child.signal_group(signal.SIGKILL)
            child.wait_for_exit(self._stop_grace_s)
            if self._watchdog is not None:
                self._watchdog.forget(child.pid)
            child.reap()

    def _wait_until_ready(self, child: Child, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not child.is_ready():
            if child.has_exited():
                child.ended_on_purpose = True  # reported by the exception
                self._bury(child)
                raise ChildDied(child.failure())
            if time.monotonic() >= deadline:
                self.end(child.plan.name)
                raise NotReady(child.plan.name, within_s, last_lines(child.plan.log))
            time.sleep(_POLL_S)
