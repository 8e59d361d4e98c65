"""The connections of a store: taken up again, made again where the server closed them, and never out of step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


def test_one_whose_server_has_become_a_replica_that_hides_what_may_be_old_is_made_again(
    connections: Connections, client: Any
) -> None:
    mine = identity(connections)
    client.config_set("replica-serve-stale-data", "no")
    try:
        client.replicaof("127.0.0.1", 1)
        with pytest.raises(redis.exceptions.MasterDownError):
            connections.ask(("EXISTS", "key"), None)
        client.replicaof("NO", "ONE")
        assert identity(connections) != mine
    finally:
        client.replicaof("NO", "ONE")
        client.config_set("replica-serve-stale-data", "yes")


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


_NO_PRIMARY = ("EVAL", "return redis.error_reply('READONLY You can not write here.')", 0)


def test_one_that_was_being_made_while_another_was_lost_is_not_kept(redis_url: str) -> None:
    """It may lead to the same server: whoever made it had asked for the way before the loss."""
    meanwhile: list[Callable[[], object]] = []

    class MadeMeanwhile(redis.Connection):
        def connect(self) -> None:
            super().connect()  # type: ignore[no-untyped-call]  # redis-py has no type here
            while meanwhile:
                with pytest.raises(redis.exceptions.ReadOnlyError):
                    meanwhile.pop()()

    pool = redis.ConnectionPool.from_url(redis_url, connection_class=MadeMeanwhile, decode_responses=True)
    connections = Connections(redis.Redis.from_pool(pool), keeps=True)
    meanwhile.append(connections.start(_NO_PRIMARY).answer)
    old = identity(connections)
    assert meanwhile == []
    assert identity(connections) != old
    connections.close()


def test_one_that_is_given_back_just_as_another_is_lost_is_not_taken_up_again(connections: Connections) -> None:
    class LosesMeanwhile(list[Any]):
        def append(self, one: Any) -> None:
            with pytest.raises(redis.exceptions.ReadOnlyError):
                lost.answer()
            super().append(one)

    old, lost = connections.start(("CLIENT", "ID")), connections.start(_NO_PRIMARY)
    connections._idle = LosesMeanwhile()
    mine = old.answer()
    connections._idle = list(connections._idle)
    assert identity(connections) != mine


def test_those_that_fail_later_from_before_a_loss_close_none_that_was_made_since(connections: Connections) -> None:
    first, second = (connections.start(_NO_PRIMARY) for _ in range(2))
    with pytest.raises(redis.exceptions.ReadOnlyError):
        first.answer()
    new = identity(connections)
    with pytest.raises(redis.exceptions.ReadOnlyError):
        second.answer()
    assert identity(connections) == new


def test_no_connection_is_forgotten_or_kept_twice_where_many_threads_lose_them(
    connections: Connections, client: Any
) -> None:
    def some(number: int) -> None:
        for turn in range(30):
            if (turn + number) % 7 == 0:
                with pytest.raises(redis.exceptions.ReadOnlyError):
                    connections.ask(_NO_PRIMARY, None)
            else:
                text = f"{number}/{turn}"
                assert connections.ask(("ECHO", text), None) == text

    others = {one["id"] for one in client.client_list()}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(some, range(8)))
    wait_until(lambda: len({one["id"] for one in client.client_list()} - others) <= 8, "one a thread")
    connections.close()
    wait_until(lambda: {one["id"] for one in client.client_list()} <= others, "every connection closed")


def test_an_answer_of_many_pieces_is_put_together(connections: Connections) -> None:
    text = "é" * 300_000
    assert connections.ask(("ECHO", text), None) == text
