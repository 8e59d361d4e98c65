"""The queue's HTTP API on a free port, served from a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

import httpx
import uvicorn

from sluicegate.async_producer import AsyncProducer
from sluicegate.http_api import Waits, create_app
from sluicegate.store import Store
from sluicegate.web.serving import quiet_config
from tests.queues import wait_until

STOP_WITHIN_S = 20.0


class ServedQueue:
    """Serve until the `with` block ends; ask through `client`, or with `post` and `job`."""

    def __init__(
        self, store: Store, *, token: str | None = None, waits: Waits | None = None, max_waiting: int = 1000
    ) -> None:
        self.producer = AsyncProducer(store, max_waiting=max_waiting)
        app = create_app(store, self.producer, token, waits)
        config = quiet_config(app, 2)
        config.port = 0
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="http")
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive(), "the HTTP server")
        assert self._server.started, self._failure
        self.port = int(self._server.servers[0].sockets[0].getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._server.should_exit = True
        self._thread.join(STOP_WITHIN_S)
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        async def serve() -> None:
            async with self.producer:
                await self._server.serve()

        try:
            asyncio.run(serve())
        except BaseException as failure:  # noqa: BLE001 (raised again where the test ends)
            self._failure = failure

    def post(self, key: str | None = "k1", **fields: Any) -> httpx.Response:
        """Submit a job of lint-fix under a key, quoted as the draft wants it; fields go over the body's."""
        headers = {} if key is None else {"Idempotency-Key": f'"{key}"'}
        return self.client.post("/v1/jobs", json=job_body(**fields), headers=headers)


def job_body(**fields: Any) -> dict[str, Any]:
    """Give a request's body; `job_class` stands for `class`."""
    body = {"class": "lint-fix", "payload": {"path": "a.py"}} | fields
    if "job_class" in body:
        body["class"] = body.pop("job_class")
    return body
