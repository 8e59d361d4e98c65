"""All proxies of one fault proxy process, by name."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from drill.proxy import FaultProxy, parse_address
from drill.toxics import ControlError, bad_body, read_text


@dataclass(frozen=True)
class ProxyRequest:
    """Hold what a request wants a proxy to be."""

    name: str
    listen: str
    upstream: str
    enabled: bool


def parse_new_proxy(raw: Mapping[str, object], place: str = "") -> ProxyRequest:
    """Read a proxy to be made, enabled unless it says otherwise; raises ControlError 400."""
    wanted = ProxyRequest(
        read_text(raw, "name"), read_text(raw, "listen"), read_text(raw, "upstream"), _read_flag(raw, default=True)
    )
    for field in ("name", "upstream"):
        if not getattr(wanted, field):
            raise ControlError(f"missing required field: {field}{place}", 400)
    parse_address(wanted.upstream, "upstream")
    if wanted.listen:
        parse_address(wanted.listen, "listen")
    return wanted


def parse_population(raw: object) -> tuple[ProxyRequest, ...]:
    """Read a list of proxies; raises ControlError 400 that says which one is wrong."""
    if not isinstance(raw, list):
        raise bad_body("a list of proxies is expected")
    wanted = []
    for number, entry in enumerate(raw, start=1):
        if not isinstance(entry, dict):
            raise bad_body(f"proxy {number} is not an object")
        wanted.append(parse_new_proxy(entry, f" at proxy {number}"))
    names = [request.name for request in wanted]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise ControlError(f"duplicate proxy name {doubled!r}", 400)
    return tuple(wanted)


def parse_changes(raw: Mapping[str, object], proxy: FaultProxy) -> ProxyRequest:
    """Read changes to a proxy; what is not named stays; raises ControlError 400."""
    return ProxyRequest(
        proxy.name,
        read_text(raw, "listen", proxy.listen),
        read_text(raw, "upstream", proxy.upstream),
        _read_flag(raw, default=proxy.enabled),
    )


def _read_flag(raw: Mapping[str, object], *, default: bool) -> bool:
    value = raw.get("enabled", default)
    if not isinstance(value, bool):
        raise bad_body(f"`enabled` is {value!r}, neither true nor false")
    return value


class Proxies:
    """Make, find and remove proxies; they share one stream of random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._proxies: dict[str, FaultProxy] = {}

    def all(self) -> tuple[FaultProxy, ...]:
        """Return the proxies in the order of their making."""
        return tuple(self._proxies.values())

    def find(self, name: str) -> FaultProxy:
        """Return the proxy of this name; raises ControlError 404."""
        if name not in self._proxies:
            raise ControlError("proxy not found", 404)
        return self._proxies[name]

    async def create(self, wanted: ProxyRequest) -> FaultProxy:
        """Make a proxy; raises ControlError 409 when the name is taken, 500 when the address is."""
        if wanted.name in self._proxies:
            raise ControlError("proxy already exists", 409)
        proxy = FaultProxy(wanted.name, wanted.listen, wanted.upstream, self._rng)
        if wanted.enabled:
            await proxy.start()
        self._proxies[wanted.name] = proxy
        return proxy

    async def populate(self, wanted: tuple[ProxyRequest, ...]) -> tuple[FaultProxy, ...]:
        """Make the proxies; one that stands with the same addresses is left as it is, another one is replaced."""
        return tuple([await self._create_or_replace(request) for request in wanted])

    async def remove(self, name: str) -> None:
        """Stop and forget a proxy; raises ControlError 404."""
        await self.find(name).stop()
        del self._proxies[name]

    async def reset(self) -> None:
        """Switch every proxy on and take every toxic away."""
        for proxy in self.all():
            await proxy.reset()

    async def stop(self) -> None:
        """Stop every proxy; safe twice."""
        for proxy in self.all():
            await proxy.stop()

    async def _create_or_replace(self, wanted: ProxyRequest) -> FaultProxy:
        standing = self._proxies.get(wanted.name)
        if standing is not None:
            if (standing.listen, standing.upstream) == (wanted.listen, wanted.upstream):
                return standing
            await self.remove(wanted.name)
        return await self.create(wanted)
