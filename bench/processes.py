"""Start processes that die with the bench; look at and end those of one worker, forked children and all."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_GRACE_S = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_PDEATHSIG = 1
# Loaded before any fork: between a fork and its exec nothing may be looked up.
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends, however that happens; for `preexec_fn`."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that what it has started is ended as well."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def family(pid: int) -> list[int]:
    """Give a process and all that descend from it, as far as they live."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_seconds(pid: int) -> float:
    """Give the CPU time of a process's threads so far: the scheduler's, in ns, not the clock ticks of times()."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def family_cpu_seconds(pid: int) -> float:
    """Give the CPU time of a process, of its living descendants, and of those that it has waited for."""
    total = 0.0
    for one in family(pid):
        with contextlib.suppress(OSError):
            total += cpu_seconds(one)
            # After the name in brackets, from field 3 on: 16 and 17 are those of the children that are gone.
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) / _TICKS
    return total


def end(process: subprocess.Popen[str]) -> None:
    """Ask a process to end, and end what is left of its family; only what descends from it."""
    pids = family(process.pid)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    until = time.monotonic() + 1.0
    while (left := [pid for pid in pids if lives(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(_GRACE_S)


def lives(pid: int) -> bool:
    """Say whether a process still runs; one that nobody has waited for yet does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
