"""The fault proxy: an HTTP proxy whose faults are switched by Toxiproxy's control API (`drill.proxy_api`).

Where it differs from Toxiproxy: it works on whole requests and answers, not on bytes. A toxic therefore takes effect
at the next request (Toxiproxy: at the next bytes), `toxicity` is drawn for each request (Toxiproxy: for each
connection), delays come before errors in whatever order the toxics were added, and there is the type `status`. An
empty host in an address is loopback, not the world.
"""

from __future__ import annotations

import asyncio
import random

import h11

from drill.ports import LOOPBACK
from drill.proxy_connection import Door, ProxyConnection
from drill.toxics import ControlError, Toxic
from drill.wire import Wire


def parse_address(text: str, field: str) -> tuple[str, int]:
    """Split `host:port`; raises ControlError 400 that names the field."""
    host, _, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ControlError(f"bad request body: `{field}` is {text!r}, not host:port", 400)
    return host.strip("[]") or LOOPBACK, int(port)


class FaultProxy:
    """Listen in front of one upstream and let its toxics act on what passes."""

    def __init__(self, name: str, listen: str, upstream: str, rng: random.Random) -> None:
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.toxics: tuple[Toxic, ...] = ()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._released: dict[str, asyncio.Event] = {}
        self._door = Door(
            upstream=lambda: parse_address(self.upstream, "upstream"),
            toxics=lambda: self.toxics,
            released=self._release_of,
            rng=rng,
        )

    @property
    def enabled(self) -> bool:
        """Tell whether the proxy listens; otherwise connections are refused."""
        return self._server is not None

    async def start(self) -> None:
        """Listen; safe twice. Port 0 becomes a free one and is kept. Raises ControlError when the address is taken."""
        if self._server is not None:
            return
        host, port = parse_address(self.listen or f"{LOOPBACK}:0", "listen")
        try:
            self._server = await asyncio.start_server(self._serve, host, port, reuse_address=True)
        except OSError as error:
            raise ControlError(f"listen tcp {host}:{port}: {error.strerror or error}", 500) from error
        bound_host, bound_port = self._server.sockets[0].getsockname()[:2]
        self.listen = f"{bound_host}:{bound_port}"

    async def stop(self) -> None:
        """Refuse new connections and close the open ones, whatever they wait for; safe twice and before start."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        open_connections = tuple(self._connections)
        for connection in open_connections:
            connection.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)

    async def update(self, listen: str, upstream: str, *, enabled: bool) -> None:
        """Change the addresses (which closes the connections) and switch the proxy on or off."""
        parse_address(upstream, "upstream")
        parse_address(listen, "listen")
        if (listen, upstream) != (self.listen, self.upstream):
            await self.stop()
            self.listen, self.upstream = listen, upstream
        await (self.start() if enabled else self.stop())

    def add(self, toxic: Toxic) -> None:
        """Add a toxic at the end; raises ControlError 409 when its name is taken."""
        if any(toxic.name == other.name for other in self.toxics):
            raise ControlError("toxic already exists", 409)
        self.toxics = (*self.toxics, toxic)

    def find(self, name: str) -> Toxic:
        """Return the toxic of this name; raises ControlError 404."""
        for toxic in self.toxics:
            if toxic.name == name:
                return toxic
        raise ControlError("toxic not found", 404)

    def change(self, toxic: Toxic) -> None:
        """Put the toxic in the place of the one with its name."""
        self.find(toxic.name)
        self.toxics = tuple(toxic if toxic.name == other.name else other for other in self.toxics)

    def remove(self, name: str) -> None:
        """Take a toxic away and let go of the connections it held; raises ControlError 404."""
        self.find(name)
        self.toxics = tuple(toxic for toxic in self.toxics if toxic.name != name)
        if event := self._released.pop(name, None):
            event.set()

    async def reset(self) -> None:
        """Switch the proxy on and take all toxics away."""
        await self.start()
        for toxic in self.toxics:
            self.remove(toxic.name)

    def to_json(self) -> dict[str, object]:
        """Return the proxy in the control API's shape."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "toxics": [toxic.to_json() for toxic in self.toxics],
        }

    def _release_of(self, name: str) -> asyncio.Event:
        """Return what is set once the toxic is taken away: at once, if that happened meanwhile."""
        event = self._released.setdefault(name, asyncio.Event())
        if not any(toxic.name == name for toxic in self.toxics):
            self._released.pop(name).set()
        return event

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._connections.add(task)
        try:
            await ProxyConnection(Wire(reader, writer, h11.SERVER), self._door).run()
        except asyncio.CancelledError:
            return  # `stop` closed it; the stream's own task has nobody to tell
        finally:
            self._connections.discard(task)
