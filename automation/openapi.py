"""Describe the service's HTTP API as OpenAPI: what FastAPI can't see, since each page reads its body itself."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from runbooks.alerts import PostedNotification

_REFERENCE = "#/components/schemas/{model}"


def body(model: type[BaseModel]) -> dict[str, Any]:
    """Give what `openapi_extra` takes for a page that reads this body."""
    schema = {"$ref": _REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


NOTIFICATION = body(PostedNotification)


def describe(app: FastAPI, models: tuple[type[BaseModel], ...]) -> None:
    """Make the application serve its whole description at /openapi.json."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title=app.title, version=app.version, routes=app.routes)
            every = [(model, "validation") for model in (PostedNotification, *models)]
            _, schemas = models_json_schema(every, ref_template=_REFERENCE)  # type: ignore[arg-type]  # its list is invariant
            document.setdefault("components", {}).setdefault("schemas", {}).update(schemas["$defs"])
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend the description
