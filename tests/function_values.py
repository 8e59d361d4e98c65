"""Ask the library's source itself what an expression is worth: for its tables and for parts that no command shows alone."""

from __future__ import annotations

import json
from typing import Any, cast

import redis

from sluicegate import functions


def value_of(client: redis.Redis, expression: str) -> Any:
    """Give what an expression is worth at the end of the library's source, on a real server."""
    source = f"#!lua\n{functions.body()}\nreturn cjson.encode({expression})"
    return json.loads(cast("str", client.eval(source, 0)))


def worth(client: redis.Redis, body: str) -> Any:
    """Give what the body of a function returns that stands at the end of the library's source."""
    return value_of(client, f"(function() {body} end)()")
