"""Many commands over one connection: answers in their order, and no connection goes on that is out of step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from sluicegate.connections import Connections
from sluicegate.pipeline import packed, packed_each


@pytest.fixture(params=[2, 3])
def connections(request: pytest.FixtureRequest, redis_url: str) -> Iterator[Connections]:
    """Return those of a client that speaks either version of the protocol."""
    client = redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=0.5, protocol=request.param)
    found = Connections(client, keeps=True)
    yield found
    found.close()
    client.flushall()
    client.close()


def asked(connections: Connections, *commands: bytes) -> list[Any]:
    """Send some commands at once, and give their answers."""
    with connections.pipeline() as pipeline:
        pipeline.send(b"".join(commands), len(commands))
        return pipeline.receive(len(commands))


@pytest.mark.parametrize("ids", [["a", "b"], ["", "%s", "ümläut", "x" * 70, "a\r\nb"], []])
def test_commands_for_each_id_are_those_that_would_be_packed_one_by_one(ids: list[str]) -> None:
    commands: tuple[tuple[str, ...], ...] = (("HGETALL", "{q}:job:"), ("HMGET", "{q%s}:job:", "state", "rev"))
    one_by_one = [packed(name, key + one, *rest) for one in ids for name, key, *rest in commands]
    assert packed_each(ids, *commands) == b"".join(one_by_one)


def test_answers_come_in_the_order_of_the_commands(connections: Connections) -> None:
    with connections.pipeline() as pipeline:
        pipeline.send(packed("SET", "k", "v") + packed("HSET", "h", "a", "1"), 2)
        pipeline.send(packed("GET", "k") + packed("HGETALL", "h") + packed("GET", "none"), 3)
        assert pipeline.receive(2) == ["OK", 1]
        assert pipeline.receive(3) == ["v", ["a", "1"], None]
    assert connections.ask(("GET", "k"), None) == "v"


def test_a_key_of_another_type_is_no_value_and_any_other_error_is_raised(connections: Connections) -> None:
    get = packed("GET", "k")
    assert asked(connections, packed("SET", "k", "v"), packed("HGETALL", "k"), get) == ["OK", None, "v"]
    with pytest.raises(redis.exceptions.ResponseError, match="wrong number"):
        asked(connections, packed("GET"), get)
    assert connections.ask(("GET", "k"), None) == "v"


def test_a_connection_with_answers_on_their_way_is_nobodys_any_more(connections: Connections) -> None:
    connections.ask(("SET", "k", "v"), None)
    with connections.pipeline() as pipeline:
        pipeline.send(packed("GET", "k") + packed("DBSIZE"), 2)
        pipeline.receive(1)
    assert connections.ask(("GET", "k"), None) == "v"


def test_no_answer_in_time_and_a_closed_connection_are_errors_of_redis_py(connections: Connections) -> None:
    with pytest.raises(redis.exceptions.TimeoutError):
        asked(connections, packed("BLPOP", "none", "0"))
    with pytest.raises(redis.exceptions.ConnectionError, match="closed the connection"):
        asked(connections, packed("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"), packed("GET", "k"))
    assert connections.ask(("PING",), None) == "PONG"


def test_what_is_no_text_comes_with_the_bytes_that_it_was(connections: Connections) -> None:
    assert asked(connections, packed("SET", "k", b"a\xff"), packed("GET", "k")) == ["OK", "a\udcff"]
