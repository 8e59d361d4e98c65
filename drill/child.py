"""One child process of a drill: how it is started so that it can't outlive the drill, and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from drill.ports import LOOPBACK, listens_on
from drill.watchdog import MARK_VARIABLE
from sluicegate.death_signal import death_signal
from sluicegate.errors import SluicegateError, UsageError

_POLL_S = 0.01
LAST_LINES = 12


@dataclass(frozen=True)
class ChildFailure:
    """Say how a child ended that nobody asked to end; exit_code is negative for a signal, as in subprocess."""

    name: str
    exit_code: int
    last_lines: tuple[str, ...]

    def __str__(self) -> str:
        code = self.exit_code
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        words = self.last_lines or ("(none)",)
        return "\n".join((f"The drill's process `{self.name}` {how}; its last words:", *words))


class ChildDied(SluicegateError):
    """Carry the failure of a child that was needed for going on."""

    def __init__(self, failure: ChildFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True)
class Listening:
    """Name the port a child is to listen on, and the check that it answers there."""

    port: int
    answers: Callable[[int], bool]


@dataclass(frozen=True)
class ChildPlan:
    """Say all that it takes to start a child, and to start it again."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    mark: str
    listening: Listening | None = None


@dataclass
class Child:
    """Hold a started child; `ended_on_purpose` keeps an end that was asked for from being reported as a failure."""

    plan: ChildPlan
    process: subprocess.Popen[bytes]
    ended_on_purpose: bool = False
    asked_to_end: bool = False

    @property
    def pid(self) -> int:
        """Return the pid; the child leads a session and a process group of the same number."""
        return self.process.pid

    def has_exited(self) -> bool:
        """Tell whether the process ended, without reaping it: until then nobody else can get its pid."""
        if self.process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self.process.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def is_ready(self) -> bool:
        """Tell whether this very child, not a stranger, listens on its port and answers; True without a port."""
        listening = self.plan.listening
        if listening is None:
            return True
        return listens_on(self.pid, listening.port) is not False and listening.answers(listening.port)

    def wait_for_exit(self, within_s: float) -> bool:
        """Wait for the process's end without reaping it; False when it still runs after `within_s` seconds."""
        deadline = time.monotonic() + within_s
        while not self.has_exited():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the child and what it started itself; nothing happens once all of them are gone."""
        if self.process.returncode is None:
            try:
                os.killpg(self.pid, number)
            except (ProcessLookupError, PermissionError):
                return  # macOS answers EPERM where only zombies are left

    def reap(self) -> int:
        """End what is left of the child's group, collect the exit code and return it."""
        self.signal_group(signal.SIGKILL)
        return self.process.wait()

    def failure(self) -> ChildFailure:
        """Describe the end of a child that was reaped."""
        return ChildFailure(self.plan.name, self.process.returncode, last_lines(self.plan.log))


def last_lines(log: Path, count: int = LAST_LINES) -> tuple[str, ...]:
    """Return the last lines of a log, oldest first; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 200 * count))
            return tuple(file.read().decode(errors="replace").splitlines()[-count:])
    except OSError:
        return ()


def child_environment(inherited: Mapping[str, str], plan: ChildPlan) -> dict[str, str]:
    """Return a child's environment: inherited, its own, the drill's mark, and loopback never through a proxy."""
    direct = ",".join(filter(None, (inherited.get("NO_PROXY") or inherited.get("no_proxy"), LOOPBACK, "localhost")))
    around = {"PYTHONUNBUFFERED": "1", "NO_PROXY": direct, "no_proxy": direct}
    return {**inherited, **around, **plan.environment, MARK_VARIABLE: plan.mark}


def launch(plan: ChildPlan) -> Child:
    """Start the process in a session of its own, stdout and stderr appended to its log.

    Raises UsageError when the program can't be run.
    """
    environment = child_environment(os.environ, plan)
    with plan.log.open("ab") as log:
        try:
            process = subprocess.Popen(
                plan.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                preexec_fn=death_signal(),  # noqa: PLW1509 (one prctl call on a function loaded before the fork)
            )
        except OSError as error:
            raise UsageError(
                f"The program `{plan.argv[0]}` for `{plan.name}` can't be started: {error.strerror}.",
                "Check that it is installed and may be executed.",
            ) from error
    return Child(plan, process)
