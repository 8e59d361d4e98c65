"""What open pages cost the service, measured on the service as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import yaml

from tests.automation_parts import ON_BOTH, Parts, quick
from tests.queues import wait_until

PAGES = 20
LOOK_S = 5.0
AT_MOST = 0.10


def serve(url: str, folder: Path, port: int) -> subprocess.Popen[bytes]:
    settings = quick(folder, automation={"port": port}).model_copy(update={"redis_url": url})
    path = folder / "sluicegate.yaml"
    path.write_text(yaml.safe_dump(json.loads(settings.model_dump_json())), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "sluicegate", "automation", "serve", "--settings", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def cpu_s(pid: int) -> float:
    """Give the processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def used(pid: int) -> float:
    """Give the share of a core that a process uses."""
    before, started = cpu_s(pid), time.monotonic()
    await asyncio.sleep(LOOK_S)
    return (cpu_s(pid) - before) / (time.monotonic() - started)


async def read_on(answer: httpx.Response) -> int:
    """Read until the stream ends; gives how many events it had."""
    return len([line async for line in answer.aiter_lines() if line.startswith("event: reading")])


@ON_BOTH
@pytest.mark.slow
def test_twenty_open_pages_cost_a_tenth_of_a_core_at_most_and_keep_nobody_from_stopping(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        try:
            return httpx.get(f"{base}/readyz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    async def measured(pid: int) -> tuple[float, float, float]:
        limits = httpx.Limits(max_connections=PAGES + 1)
        async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=30, limits=limits) as client:
            await used(pid)  # what the start takes is none of it
            idle = await used(pid)
            async with AsyncExitStack() as stack:
                answers = [await stack.enter_async_context(client.stream("GET", "/live")) for _ in range(PAGES)]
                reading = [asyncio.create_task(read_on(answer)) for answer in answers]
                busy = await used(pid)
                started = time.monotonic()
                os.kill(pid, signal.SIGTERM)
                events = await asyncio.wait_for(asyncio.gather(*reading), 15)
                assert min(events) >= LOOK_S, "each page was live all the time"
                return idle, busy, time.monotonic() - started

    parts = Parts(redis_url, quick(tmp_path), controller=False, executor=False)
    parts.submit(50)
    service = serve(redis_url, tmp_path, port)
    try:
        wait_until(is_ready, "the service", 30)
        idle, busy, ended_s = asyncio.run(measured(service.pid))
        service.wait(15)
    finally:
        service.kill()
        service.wait()
        parts.close()
    with capsys.disabled():
        print(f"\n{PAGES} pages: {busy:.1%} of a core, {idle:.1%} without; all ended {ended_s:.1f} s after SIGTERM")
    assert busy <= AT_MOST
    assert ended_s < 3
