"""Toxiproxy's control API in front of the drill's own proxies: the same paths, shapes and status codes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

import sluicegate
from drill.ports import LOOPBACK, listening_socket
from drill.proxies import Proxies, parse_changes, parse_new_proxy, parse_population
from drill.toxics import ControlError, decode_json, decode_object, parse_toxic, updated_toxic

# The release whose control API this is, and who speaks it: clients look at the numbers, people at the rest.
_SPOKEN_VERSION = "2.12.0"


def create_control_app(proxies: Proxies) -> FastAPI:
    """Return the control API; the proxies stop with it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await proxies.stop()

    app = FastAPI(title="Sluicegate fault proxy", openapi_url=None, lifespan=lifespan)
    _answer_errors(app)
    _add_proxy_routes(app, proxies)
    _add_toxic_routes(app, proxies)
    return app


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(ControlError)
    async def control_error(_: Request, error: ControlError) -> JSONResponse:
        return JSONResponse({"error": error.message, "status": error.status}, error.status)

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail, "status": error.status_code}, error.status_code)

    @app.middleware("http")
    async def keep_browsers_out(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        # As Toxiproxy does: a web page must not be able to post to a server on loopback.
        if request.headers.get("user-agent", "").startswith("Mozilla/"):
            return JSONResponse({"error": "User agent not allowed", "status": 403}, 403)
        return await go_on(request)


def _add_proxy_routes(app: FastAPI, proxies: Proxies) -> None:
    @app.get("/version")
    async def version() -> JSONResponse:
        return JSONResponse({"version": f"{_SPOKEN_VERSION}+sluicegate.{sluicegate.__version__}"})

    @app.get("/proxies")
    async def index() -> JSONResponse:
        return JSONResponse({proxy.name: proxy.to_json() for proxy in proxies.all()})

    @app.post("/proxies")
    async def create(request: Request) -> JSONResponse:
        proxy = await proxies.create(parse_new_proxy(decode_object(await request.body())))
        return JSONResponse(proxy.to_json(), 201)

    @app.post("/populate")
    async def populate(request: Request) -> JSONResponse:
        made = await proxies.populate(parse_population(decode_json(await request.body())))
        return JSONResponse({"proxies": [proxy.to_json() for proxy in made]}, 201)

    @app.post("/reset")
    async def reset() -> Response:
        await proxies.reset()
        return Response(status_code=204)

    @app.get("/proxies/{name}")
    async def show(name: str) -> JSONResponse:
        return JSONResponse(proxies.find(name).to_json())

    @app.api_route("/proxies/{name}", methods=["POST", "PATCH"])
    async def update(name: str, request: Request) -> JSONResponse:
        proxy = proxies.find(name)
        wanted = parse_changes(decode_object(await request.body()), proxy)
        await proxy.update(wanted.listen, wanted.upstream, enabled=wanted.enabled)
        return JSONResponse(proxy.to_json())

    @app.delete("/proxies/{name}")
    async def delete(name: str) -> Response:
        await proxies.remove(name)
        return Response(status_code=204)


def _add_toxic_routes(app: FastAPI, proxies: Proxies) -> None:
    @app.get("/proxies/{name}/toxics")
    async def index(name: str) -> JSONResponse:
        return JSONResponse([toxic.to_json() for toxic in proxies.find(name).toxics])

    @app.post("/proxies/{name}/toxics")
    async def create(name: str, request: Request) -> JSONResponse:
        proxy = proxies.find(name)
        toxic = parse_toxic(decode_object(await request.body()))
        proxy.add(toxic)
        return JSONResponse(toxic.to_json())

    @app.get("/proxies/{name}/toxics/{toxic_name}")
    async def show(name: str, toxic_name: str) -> JSONResponse:
        return JSONResponse(proxies.find(name).find(toxic_name).to_json())

    @app.api_route("/proxies/{name}/toxics/{toxic_name}", methods=["POST", "PATCH"])
    async def update(name: str, toxic_name: str, request: Request) -> JSONResponse:
        proxy = proxies.find(name)
        toxic = updated_toxic(proxy.find(toxic_name), decode_object(await request.body()))
        proxy.change(toxic)
        return JSONResponse(toxic.to_json())

    @app.delete("/proxies/{name}/toxics/{toxic_name}")
    async def delete(name: str, toxic_name: str) -> Response:
        proxies.find(name).remove(toxic_name)
        return Response(status_code=204)


def serve_proxy(port: int, host: str = LOOPBACK, seed: int | None = None) -> None:
    """Serve the control API, and the proxies made through it, until SIGTERM or SIGINT.

    Raises UsageError when the port is taken.
    """
    sock = listening_socket(port, host)
    app = create_control_app(Proxies(random.Random(seed)))
    config = uvicorn.Config(app, http="h11", log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[sock])
