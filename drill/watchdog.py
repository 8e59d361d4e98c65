"""End everything that a drill started once the drill itself is gone, however it went.

Two things end a drill's processes when it is killed without a chance to clean up. The kernel's parent-death signal
ends the direct children (`drill.children`); it is cleared by a fork, so it says nothing about their children. This
watchdog ends all of them: it holds the reading end of a pipe whose only writing end is in the drill, and when that
end closes it kills each session it was told of and each process that carries the drill's mark in its environment.

The file runs as a script of its own (`python -I -S watchdog.py MARK`), so it imports the standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MARK_VARIABLE = "SLUICEGATE_DRILL_MARK"
PARENT_CHECK_S = 0.5
END_WITHIN_S = 4.0
PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessStat:
    """Hold what the kernel says of one process; started_ticks tells a process from a later one with its pid."""

    pid: int
    state: str
    session: int
    started_ticks: int


def read_stat(pid: int) -> ProcessStat | None:
    """Return the kernel's line on a process, or None when there is none or this system has no /proc."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name stands in brackets and may itself hold spaces and brackets: the last one ends it.
    fields = text.rpartition(")")[2].split()
    return ProcessStat(pid, state=fields[0], session=int(fields[3]), started_ticks=int(fields[19]))


def survivors(mark: str, sessions: Iterable[int]) -> list[int]:
    """Return the pids of living processes that belong to one of the sessions or carry the mark, but for this one."""
    watched = frozenset(sessions)
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    return [
        stat.pid
        for stat in _processes()
        if stat.pid != os.getpid()
        and stat.state not in "ZX"
        and (stat.session in watched or _carries(stat.pid, wanted))
    ]


def end_survivors(mark: str, sessions: Iterable[int], within_s: float = END_WITHIN_S) -> list[int]:
    """Kill what `survivors` finds until nothing is found; return what still lived after `within_s` seconds."""
    watched = frozenset(sessions)
    if not PROC.joinpath("self").exists():
        for session in watched:
            _signal_group(session)
        return []
    deadline = time.monotonic() + within_s
    while (left := survivors(mark, watched)) and time.monotonic() < deadline:
        for pid in left:
            _kill(pid)
        time.sleep(0.01)
    return left


def _processes() -> Iterator[ProcessStat]:
    for entry in os.listdir(PROC):
        if entry.isdigit() and (stat := read_stat(int(entry))) is not None:
            yield stat


def _carries(pid: int, wanted: bytes) -> bool:
    try:
        environment = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False  # it ended meanwhile, or it belongs to somebody else
    return wanted in environment.split(b"\0")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # it ended meanwhile, or the pid is somebody else's by now


def _signal_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


class Watchdog:
    """Run the watchdog process beside a drill and keep it told which sessions are the drill's."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def start(self) -> None:
        """Start the process; the writing end of its pipe closes when this process ends, by whatever signal."""
        reading, self._pipe = os.pipe()
        environment = {name: value for name, value in os.environ.items() if name != MARK_VARIABLE}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, self._mark],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # a Ctrl-C in the terminal must not end the one that cleans up after it
        )
        os.close(reading)

    @property
    def pid(self) -> int:
        """Return the pid of the process, 0 before start and after stop."""
        return self._process.pid if self._process is not None else 0

    def watch(self, session: int) -> None:
        """Have the session killed when this process is gone."""
        self._tell(f"+{session}\n")

    def forget(self, session: int) -> None:
        """Leave the session alone from now on: its number is about to be free for others."""
        self._tell(f"-{session}\n")

    def exit_code(self) -> int | None:
        """Return how the process ended, None while it runs or was not started."""
        return self._process.poll() if self._process is not None else None

    def stop(self) -> None:
        """Let the process end what is left and go; safe twice and before start."""
        if self._process is None:
            return
        os.close(self._pipe)
        try:
            self._process.wait(END_WITHIN_S + 1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe, line.encode())
        except BrokenPipeError:
            return  # `exit_code` reports a watchdog that died; the children themselves are unharmed


def _read_until_parent_is_gone(parent: int) -> set[int]:
    """Follow the pipe's `+session` and `-session` lines until it closes; return the sessions left."""
    sessions: set[int] = set()
    rest = b""
    while True:
        ready, _, _ = select.select([0], [], [], PARENT_CHECK_S)
        if not ready:
            # A process that the drill forked without exec holds a copy of the pipe: ask for the parent as well.
            if os.getppid() != parent:
                return sessions
            continue
        chunk = os.read(0, 4096)
        if not chunk:
            return sessions
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            (sessions.add if line[:1] == b"+" else sessions.discard)(int(line[1:]))


def main() -> None:
    """Wait for the drill's end, then end what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mark = sys.argv[1]
    end_survivors(mark, _read_until_parent_is_gone(os.getppid()))


if __name__ == "__main__":
    main()
