"""Ask the library's source itself what an expression is worth: its tables, and parts that no command shows alone."""

from __future__ import annotations

import json
from typing import Any

from sluicegate import functions


def value_of(client: Any, expression: str) -> Any:
    """Give what an expression is worth at the end of the library's source, on a real server."""
    source = f"#!lua\n{functions.body()}\nreturn cjson.encode({expression})"
    return json.loads(client.eval(source, 0))


def worth(client: Any, body: str) -> Any:
    """Give what the body of a function returns that stands at the end of the library's source."""
    return value_of(client, f"(function() {body} end)()")
