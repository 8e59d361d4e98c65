"""Enqueue for a peer, in its own environment: `python -m bench.peers.host NAME`.

Takes a JSON object a line on stdin and answers one on stdout; ends with stdin. What is timed is the enqueueing alone.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from bench.peers import Peer


async def _one_by_one(peer: Peer, n: int, payload: str) -> float:
    began = time.perf_counter()
    for _ in range(n):
        await peer.enqueue(payload)
    return time.perf_counter() - began


async def _at_once(peer: Peer, n: int, callers: int, payload: str) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(_one_by_one(peer, n // callers, payload) for _ in range(callers)))
    return time.perf_counter() - began


def _installed() -> Mapping[str, str]:
    return {found.metadata["Name"]: found.version for found in importlib.metadata.distributions()}


async def answer(peer: Peer, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Do what one line asks for."""
    match asked["do"]:
        case "about":
            return {"concurrent": peer.concurrent, "worker": peer.worker, "left": peer.left, "installed": _installed()}
        case "open":
            await peer.open()
            return {}
        case "enqueue":
            return {"seconds": await _one_by_one(peer, asked["n"], asked["payload"])}
        case "enqueue_at_once":
            return {"seconds": await _at_once(peer, asked["n"], asked["callers"], asked["payload"])}
        case "pick":
            asked_ns = time.monotonic_ns()
            await peer.enqueue(asked["payload"])
            return {"asked_ns": asked_ns}
    raise ValueError(f"unknown: {asked['do']!r}")


async def main(name: str) -> None:
    """Serve until stdin ends; what fails is answered with its error and ends the host."""
    peer: Peer = importlib.import_module(f"bench.peers.{name}").Peer()
    # Read in a thread: a peer's connection may have work of its own to do meanwhile.
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await answer(peer, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
