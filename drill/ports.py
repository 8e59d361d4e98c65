"""Find a free port, and tell whose a listening port is."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import re
import socket
from collections.abc import Container
from pathlib import Path

from sluicegate.errors import UsageError

LOOPBACK = "127.0.0.1"
# What redis, Go programs, uvicorn and the C library write when a port is taken.
BIND_FAILED = re.compile(r"address already in use|EADDRINUSE|errno 98|only one usage of each socket", re.IGNORECASE)
_LISTEN = "0A"
# Above the well-known services, and below what Linux hands out by default.
_FIRST_OWN, _LAST_OWN = 15_000, 32_000


def free_port(host: str = LOOPBACK) -> int:
    """Return a port that was free a moment ago; whoever binds it must be ready to find it taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def lasting_port(taken: Container[int] = (), host: str = LOOPBACK) -> int:
    """Return a port that is free, is not in `taken`, and that no outgoing connection will be given.

    A process that is started on it later, or again and again, finds it free: the system hands out the ports of its
    ephemeral range alone.
    """
    first, last = _ephemeral_range()
    outside = [port for port in range(_FIRST_OWN, _LAST_OWN) if not first <= port <= last and port not in taken]
    for port in random.SystemRandom().sample(outside, len(outside)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            return port
    raise UsageError(f"No port from {_FIRST_OWN} to {_LAST_OWN} is free on {host}.")


def _ephemeral_range() -> tuple[int, int]:
    """Give the range that the system hands out; Linux' usual one where it does not say."""
    try:
        first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
        return int(first), int(last)
    except (OSError, ValueError):
        return 32_768, 60_999


def listening_socket(port: int, host: str = LOOPBACK) -> socket.socket:
    """Bind and listen (0 takes a free port); raise UsageError when the address is taken, not ours, or not allowed."""
    # Named in full: asyncio turns Nagle's delay (40 ms an answer) off only where it sees that the protocol is TCP.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(128)
    except (OSError, OverflowError) as error:
        sock.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "address already in use" if taken else str(error)
        raise UsageError(
            f"Port {port} on {host} can't be listened on: {reason}.", "Choose another port; 0 takes a free one."
        ) from error
    return sock


def listens_on(pid: int, port: int) -> bool | None:
    """Tell whether this process itself listens on the TCP port; None where the system does not say (no /proc).

    Two drills that start at once may be handed the same free port. Only one can bind it, and the other must not
    take its neighbour's answer for its own server's.
    """
    tables = [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]
    if not tables:
        return None
    wanted = {f"socket:[{inode}]" for table in tables for inode in _listening_inodes(table, port)}
    return bool(wanted) and not wanted.isdisjoint(_open_sockets(pid))


def _listening_inodes(table: Path, port: int) -> set[str]:
    rows = (line.split() for line in table.read_text(encoding="ascii").splitlines()[1:])
    return {row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port}


def _open_sockets(pid: int) -> set[str]:
    folder = Path(f"/proc/{pid}/fd")
    found = set()
    try:
        names = os.listdir(folder)
    except OSError:
        return set()
    for name in names:
        try:
            found.add(os.readlink(folder / name))
        except OSError:
            continue  # closed between the listing and the look
    return found
