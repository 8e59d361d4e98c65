"""A drill as a process of its own, watched from outside: its lines, its descendants, their ports."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drill.watchdog import ProcessStat, read_stat
from tests.guides import Typed

REPOSITORY = Path(__file__).parents[1]
DRILL = (sys.executable, "-m", "sluicegate", "drill")
_LISTEN = "0A"


@dataclass(frozen=True)
class Places:
    """Hold where one test's drill puts its data and its report."""

    temporary: Path
    reports: Path

    @classmethod
    def below(cls, folder: Path) -> Places:
        places = cls(folder / "tmp", folder / "report")
        places.temporary.mkdir()
        return places

    def left(self) -> list[str]:
        """Return the names of what lies in the temporary folder."""
        return sorted(entry.name for entry in self.temporary.iterdir())


def start(places: Places, *arguments: str) -> subprocess.Popen[str]:
    """Start a fast drill; its stdout and stderr are one pipe of lines."""
    return started(places, [*DRILL, "--profile", "fast", "--report-dir", str(places.reports), *arguments])


def started(places: Places, words: Sequence[str]) -> subprocess.Popen[str]:
    """Start a drill by these words."""
    return subprocess.Popen(
        words,
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(places.temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(places: Places, *arguments: str) -> tuple[int, str]:
    """Run a fast drill to its end; return exit code and output."""
    return ended(start(places, *arguments))


def make(places: Places, typed: Typed, *arguments: str) -> tuple[int, str]:
    """Run a drill as a guide has it typed, `make drill …`, with further arguments; return exit code and output."""
    make, target, *given = shlex.split(typed.line, comments=True)
    own = " ".join([*(word.removeprefix("ARGS=") for word in given), "--report-dir", str(places.reports), *arguments])
    return ended(started(places, [make, target, f"ARGS={own}"]))


def ended(drill: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = drill.communicate()
    return drill.returncode, output


def read_until(drill: subprocess.Popen[str], beginning: str) -> str:
    """Read lines until one begins so; return what was read. The drill itself bounds each of its phases."""
    assert drill.stdout is not None
    read = []
    for line in drill.stdout:
        read.append(line)
        if line.startswith(beginning):
            return "".join(read)
    raise AssertionError(f"the drill ended before the line {beginning!r}:\n{''.join(read)}")


def eventually(holds: Callable[[], bool], within_s: float) -> bool:
    """Wait until it holds; False when it did not within the bound."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def descendants(pid: int) -> list[ProcessStat]:
    """Return the processes below a process, all generations, told from later ones by their start."""
    parents: dict[int, list[int]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents.setdefault(int(fields[1]), []).append(int(entry))
    found, open_ends = [], [pid]
    while open_ends:
        below = parents.get(open_ends.pop(), [])
        open_ends += below
        found += [stat for child in below if (stat := read_stat(child)) is not None]
    return found


def living(processes: list[ProcessStat]) -> list[int]:
    """Return the pids of those that still run and are still the same processes."""
    now = {process: read_stat(process.pid) for process in processes}
    return [
        process.pid
        for process, stat in now.items()
        if stat is not None and stat.started_ticks == process.started_ticks and stat.state not in "ZX"
    ]


def _listening() -> dict[str, int]:
    """Return what a descriptor of a listening socket is called → its port, for the whole machine."""
    found = {}
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else []:
            row = line.split()
            if row[3] == _LISTEN:
                found[f"socket:[{row[9]}]"] = int(row[1].rpartition(":")[2], 16)
    return found


def open_ports() -> set[int]:
    """Return the TCP ports that anybody on this machine listens on."""
    return set(_listening().values())


def listening_ports(processes: list[ProcessStat]) -> set[int]:
    """Return the TCP ports that these processes listen on."""
    sockets = _listening()
    ports = set()
    for process in processes:
        folder = Path(f"/proc/{process.pid}/fd")
        for name in os.listdir(folder) if folder.exists() else []:
            try:
                ports.add(sockets[os.readlink(folder / name)])
            except (OSError, KeyError):
                continue  # closed meanwhile, or no listening socket
    return ports


def end(drill: subprocess.Popen[str]) -> None:
    """Make sure that a test leaves no drill behind, whatever it found."""
    if drill.poll() is None:
        drill.send_signal(signal.SIGKILL)
    drill.wait()
    if drill.stdout is not None:
        drill.stdout.close()
