"""What a webhook costs at least: a bare FastAPI app that writes each body to Redis: `python -m bench.bare_hook URL`.

It prints its port once it listens.
"""

from __future__ import annotations

import sys

import redis.asyncio
import uvicorn
from fastapi import FastAPI, Request

from sluicegate.listening import listen


def create_app(url: str) -> FastAPI:
    app, client = FastAPI(), redis.asyncio.Redis.from_url(url)

    @app.post("/hook", status_code=202)
    async def hook(request: Request) -> dict[str, bool]:
        await client.xadd("bare:inbox", {"body": await request.body()}, maxlen=10_000)
        return {"kept": True}

    return app


if __name__ == "__main__":
    bound = listen("127.0.0.1", 0, "the bench")
    print(bound.getsockname()[1], flush=True)
    config = uvicorn.Config(create_app(sys.argv[1]), log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[bound])
