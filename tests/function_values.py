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


# Count the commands of a script and what they answer; their results stay what they are.
_COUNTING = """local redis = setmetatable({ calls = 0, fetched = 0 }, { __index = redis })
function redis.call(...)
  local answer = getmetatable(redis).__index.call(...)
  redis.calls = redis.calls + 1
  redis.fetched = redis.fetched + (type(answer) == 'table' and #answer or 1)
  return answer
end
"""


def worth_counted(client: Any, body: str) -> Any:
    """Give the same of a body that may say `redis.calls` and `redis.fetched`: commands, and items of their answers."""
    source = f"#!lua\n{_COUNTING}{functions.body()}\nreturn cjson.encode((function() {body} end)())"
    return json.loads(client.eval(source, 0))
