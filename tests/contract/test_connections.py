"""The connections of a store: taken up again, made again where the server closed them, and never out of step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from sluicegate.connections import Connections
from tests.queues import wait_until


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    """Give a plain client of an empty server."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        yield plain


@pytest.fixture
def connections(redis_url: str) -> Iterator[Connections]:
    """Give the connections of a store that shares its pool with nobody."""
    with redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=5) as owned:
        kept = Connections(owned, keeps=True)
        yield kept
        kept.close()


def identity(connections: Connections) -> object:
    return connections.ask(("CLIENT", "ID"), None)


def test_the_next_command_takes_the_connection_of_the_last(connections: Connections) -> None:
    assert identity(connections) == identity(connections)


def test_one_that_was_closed_while_it_stood_idle_is_made_again(connections: Connections, client: Any) -> None:
    mine = identity(connections)
    for _ in range(3):
        client.client_kill_filter(_id=str(mine))
        again = identity(connections)
        assert again != mine
        mine = again


def test_an_error_answer_leaves_the_connection_in_step(connections: Connections) -> None:
    mine = identity(connections)
    with pytest.raises(redis.exceptions.ResponseError):
        connections.ask(("NO-SUCH-COMMAND",), None)
    assert identity(connections) == mine


def test_an_answer_that_is_late_for_its_own_bound_reaches_nobody(connections: Connections) -> None:
    with pytest.raises(redis.exceptions.TimeoutError, match="no answer within"):
        connections.ask(("BLPOP", "nothing", "0.3"), 0.05)
    assert connections.ask(("ECHO", "new"), None) == "new"


def test_what_was_sent_ahead_is_answered_when_it_is_asked_for(connections: Connections) -> None:
    first, second = connections.start(("ECHO", "a")), connections.start(("ECHO", "b"))
    assert (second.answer(), first.answer()) == ("b", "a")


def test_an_answer_that_was_given_up_reaches_nobody(connections: Connections) -> None:
    connections.start(("ECHO", "a")).abandon()
    assert connections.ask(("ECHO", "b"), None) == "b"


def test_an_answer_that_is_late_for_the_clients_own_bound_reaches_nobody(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=0.05) as owned:
        connections = Connections(owned, keeps=True)
        with pytest.raises(redis.exceptions.TimeoutError):
            connections.ask(("BLPOP", "nothing", "0.3"), None)
        assert connections.ask(("ECHO", "new"), None) == "new"
        connections.close()


def test_a_server_that_closes_instead_of_answering_is_a_lost_connection(connections: Connections, client: Any) -> None:
    mine = identity(connections)
    asked = connections.start(("BLPOP", "nothing", "5"))
    client.client_kill_filter(_id=str(mine))
    with pytest.raises(redis.exceptions.ConnectionError):
        asked.answer()
    assert identity(connections) != mine


def test_what_the_server_says_unasked_is_no_answer(redis_url: str, client: Any) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=5, protocol=3) as owned:
        connections = Connections(owned, keeps=True)
        connections.ask(("CLIENT", "TRACKING", "ON"), None)
        connections.ask(("GET", "watched"), None)
        asked = connections.start(("BLPOP", "list", "5"))
        client.set("watched", "changed")
        client.lpush("list", "answer")
        assert asked.answer() == ["list", "answer"]
        connections.close()


def test_one_whose_server_has_become_a_replica_is_made_again(connections: Connections) -> None:
    mine = identity(connections)
    with pytest.raises(redis.exceptions.ReadOnlyError):
        connections.ask(("EVAL", "return redis.error_reply('READONLY You can not write here.')", 0), None)
    assert identity(connections) != mine


def test_one_that_is_left_with_too_few_replicas_is_made_again(connections: Connections, client: Any) -> None:
    mine = identity(connections)
    client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(redis.exceptions.ResponseError, match="NOREPLICAS"):
            connections.ask(("SET", "key", "value"), None)
        assert identity(connections) != mine
    finally:
        client.config_set("min-replicas-to-write", 0)


class _FindsItsWay(redis.Connection):
    """Count how often it was asked to connect: one made through Sentinels asks them then, and at no other time."""

    asked = 0

    def connect(self) -> None:
        _FindsItsWay.asked += 1
        super().connect()  # type: ignore[no-untyped-call]  # redis-py has no type here


def test_one_that_is_made_again_is_asked_to_find_its_way_again(redis_url: str, client: Any) -> None:
    pool = redis.ConnectionPool.from_url(redis_url, connection_class=_FindsItsWay, decode_responses=True)
    connections = Connections(redis.Redis.from_pool(pool), keeps=True)
    mine, asked = identity(connections), _FindsItsWay.asked
    client.client_kill_filter(_id=str(mine))
    assert identity(connections) != mine
    assert _FindsItsWay.asked == asked + 1
    connections.close()


def test_with_one_that_is_lost_all_others_are_closed_and_those_in_use_when_they_come_back(
    connections: Connections, client: Any
) -> None:
    """Its server may go on after another has taken over, and nothing that leads there may be taken up again."""
    idle, used = (connections.start(("CLIENT", "ID")) for _ in range(2))
    lost = connections.start(("EVAL", "return redis.error_reply('READONLY You can not write here.')", 0))
    ids = {str(idle.answer())}
    with pytest.raises(redis.exceptions.ReadOnlyError):
        lost.answer()
    ids.add(str(used.answer()))
    wait_until(lambda: ids.isdisjoint({one["id"] for one in client.client_list()}), "both connections closed")
    assert str(identity(connections)) not in ids


def test_an_answer_of_many_pieces_is_put_together(connections: Connections) -> None:
    text = "é" * 300_000
    assert connections.ask(("ECHO", text), None) == text
