"""The automation service's HTTP API under requests made from its own description: no answer is a 5xx."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.automation_parts import ON_BOTH
from tests.webhooks import served, still

# Requests a page; the long tests send more.
FEW, MANY = 5, 100


@contextmanager
def serving(url: str, folder: Path) -> Iterator[str]:
    """Serve the API of an open queue with a live run on a loop of its own; gives its address."""
    ready, done, address = threading.Event(), threading.Event(), list[str]()

    async def serve() -> None:
        async with still(url, folder) as parts, served(parts) as client:
            parts.open_run()
            address.append(str(client.base_url))
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield address[0]
    finally:
        done.set()
        thread.join(20)


def fuzzed(operation: Any, mode: GenerationMode, examples: int) -> set[int]:
    """Send an operation so many requests of that kind; gives the codes it was answered with."""
    seen: set[int] = set()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        answer = case.call()
        seen.add(answer.status_code)
        assert answer.status_code < 500, f"{case.as_curl_command()}\n{answer.status_code}: {answer.text}"

    # Of a page that takes nothing, nothing can be wrong.
    with contextlib.suppress(Unsatisfiable):
        send()
    return seen


@ON_BOTH
@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_no_request_makes_the_service_fail(redis_url: str, tmp_path: Path, mode: GenerationMode, examples: int) -> None:
    with serving(redis_url, tmp_path) as address:
        schema: Any = schemathesis.openapi.from_url(f"{address}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        codes = {f"{one.method.upper()} {one.path}": fuzzed(one, mode, examples) for one in operations}

    posts = {name for name in codes if name.startswith("POST")}
    assert {
        "POST /webhooks/alertmanager",
        "POST /webhooks/grafana",
        "POST /v1/runs",
        "POST /v1/runs/{run}/hold",
    } <= posts
    assert all(codes[name] for name in posts), "requests were made to every page that takes one"
    if mode is GenerationMode.NEGATIVE:
        assert all(202 not in codes[name] for name in posts)
