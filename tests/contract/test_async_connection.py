"""One connection of an event loop: answers in the order of the questions, and what happens where none comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis

from sluicegate.async_connection import AsyncConnection, ErrorAnswer
from sluicegate.errors import StoreUnavailable
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.queues import OpenQueue, wait_until

WITHIN_S = 10.0
JOB = Submission("k1", "lint-fix", "{}").words()

Connect = Callable[..., AsyncConnection]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WITHIN_S):
            await scenario()

    asyncio.run(bounded())


@pytest.fixture
def connect(redis_url: str) -> Iterator[Connect]:
    """Return a function that prepares a connection to an empty server, with options of redis-py."""
    clients = []

    def made(url: str = redis_url, **options: Any) -> AsyncConnection:
        clients.append(redis.Redis.from_url(url, decode_responses=True, **options))
        connection = AsyncConnection.like_those_of(clients[-1])
        assert connection is not None
        return connection

    yield made
    for client in clients:
        client.close()


def test_each_asker_gets_the_answer_to_its_own_question(connect: Connect) -> None:
    async def scenario() -> None:
        connection = connect()
        asked = [connection.ask(("ECHO", f"n{number}" * number)) for number in range(1, 200)]
        assert await asyncio.gather(*asked) == [f"n{number}" * number for number in range(1, 200)]
        await connection.close()
        await connection.close()

    run(scenario)


def test_one_who_has_gone_leaves_the_others_their_answers(connect: Connect) -> None:
    async def scenario() -> None:
        connection = connect()
        await connection.ask(("PING",))
        asked = [asyncio.ensure_future(connection.ask(("ECHO", str(number)))) for number in range(3)]
        await asyncio.sleep(0)
        asked[1].cancel()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [answers[0], type(answers[1]), answers[2]] == ["0", asyncio.CancelledError, "2"]
        await connection.close()

    run(scenario)


def test_an_error_is_told_in_the_words_of_the_server_and_the_connection_stays(connect: Connect) -> None:
    async def scenario() -> None:
        connection = connect()
        mine = await connection.ask(("CLIENT", "ID"))
        with pytest.raises(ErrorAnswer, match="unknown command"):
            await connection.ask(("NO-SUCH-COMMAND",))
        assert await connection.ask(("CLIENT", "ID")) == mine
        await connection.close()

    run(scenario)


def test_one_whose_server_takes_no_writes_is_made_again(connect: Connect, client: Any) -> None:
    async def scenario() -> None:
        connection = connect()
        mine = await connection.ask(("CLIENT", "ID"))
        with pytest.raises(ErrorAnswer, match="NOREPLICAS"):
            await connection.ask(("SET", "key", "value"))
        assert await connection.ask(("CLIENT", "ID")) != mine
        await connection.close()

    client.config_set("min-replicas-to-write", 1)
    try:
        run(scenario)
    finally:
        client.config_set("min-replicas-to-write", 0)


def test_a_server_that_takes_no_writes_is_an_outage_for_whoever_submits(queue: OpenQueue) -> None:
    queue.client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            queue.submit()
    finally:
        queue.client.config_set("min-replicas-to-write", 0)
    assert queue.submit().accepted


def test_a_server_that_becomes_a_replica_is_an_outage_for_whoever_waits_for_work(queue: OpenQueue) -> None:
    async def scenario() -> None:
        connection = queue.store.async_connection()
        assert connection is not None
        while await queue.store.wait_for_work_async(connection, 0.1):
            pass
        waiting = asyncio.ensure_future(queue.store.wait_for_work_async(connection, 5))
        await asyncio.to_thread(wait_until, lambda: queue.client.info()["blocked_clients"] == 1, "one who waits")
        queue.client.replicaof("127.0.0.1", 1)
        with pytest.raises(StoreUnavailable, match="UNBLOCKED"):
            await waiting
        await connection.close()

    try:
        run(scenario)
    finally:
        queue.client.replicaof("NO", "ONE")


def test_what_the_server_closes_fails_for_all_who_wait_and_is_made_again(redis_url: str, connect: Connect) -> None:
    async def scenario() -> None:
        connection = connect()
        mine = await connection.ask(("CLIENT", "ID"))
        asked = [asyncio.ensure_future(connection.ask(words)) for words in (("BLPOP", "nothing", 0), ("PING",))]
        await asyncio.sleep(0)
        with redis.Redis.from_url(redis_url) as other:
            wait_until(lambda: other.info("clients")["blocked_clients"] == 1, "the blocked client")
            other.client_kill_filter(_id=str(mine))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [redis.exceptions.ConnectionError] * 2
        assert await connection.ask(("CLIENT", "ID")) != mine
        await connection.close()

    run(scenario)


def test_no_answer_in_time_is_told_and_what_comes_late_reaches_nobody(connect: Connect) -> None:
    async def scenario() -> None:
        connection = connect(socket_timeout=0.2)
        with pytest.raises(redis.exceptions.TimeoutError, match="no answer in time"):
            await connection.ask(("BLPOP", "nothing", "0.4"))
        assert await connection.ask(("ECHO", "new")) == "new"
        await connection.close()

    run(scenario)


def test_a_server_that_is_not_there_is_no_answer(connect: Connect) -> None:
    async def scenario() -> None:
        with pytest.raises(redis.exceptions.ConnectionError):
            await connect("redis://127.0.0.1:1/0").ask(("PING",))

    run(scenario)


def test_it_is_the_same_user_on_the_same_database(redis_url: str, connect: Connect) -> None:
    async def scenario() -> None:
        url = redis_url.replace("redis://", "redis://somebody:secret@").rsplit("/", 1)[0] + "/3"
        connection = connect(url)
        assert await connection.ask(("ACL", "WHOAMI")) == "somebody"
        assert " db=3 " in str(await connection.ask(("CLIENT", "INFO")))
        await connection.close()

    with redis.Redis.from_url(redis_url) as owner:
        owner.execute_command("ACL", "SETUSER", "somebody", "reset", "on", ">secret", "~*", "+@all")
        try:
            run(scenario)
        finally:
            owner.execute_command("ACL", "DELUSER", "somebody")


def test_a_kind_of_connection_without_its_like_gets_through_in_a_thread(queue: OpenQueue) -> None:
    class Own(redis.Connection):
        pass

    async def scenario() -> None:
        pool = redis.ConnectionPool.from_url(queue.url, connection_class=Own, decode_responses=True)
        with redis.Redis(connection_pool=pool) as client:
            store = Store(client, "default")
            assert store.async_connection() is None
            assert (await store.admit_async(None, [JOB]))[0].accepted

    run(scenario)


def test_a_submission_gets_through_where_the_library_is_missing_or_functions_are_forbidden(queue: OpenQueue) -> None:
    queue.client.execute_command(
        "ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all", "-function", "-fcall"
    )

    async def scenario() -> None:
        queue.client.function_flush()
        for url in (queue.url, queue.url.replace("redis://", "redis://limited:secret@")):
            store = Store.connect(url)
            connection = store.async_connection()
            assert connection is not None
            for _ in range(2):
                (decision,) = await store.admit_async(connection, [JOB])
                assert decision.accepted
            await connection.close()
            store.close()

    try:
        run(scenario)
    finally:
        queue.client.execute_command("ACL", "DELUSER", "limited")
    assert queue.counters()["admitted"] == 1
    assert queue.counters()["replayed"] == 3


def test_what_is_no_text_is_told_to_whoever_asked_and_the_connection_is_made_again(
    redis_url: str, connect: Connect
) -> None:
    async def scenario() -> None:
        connection = connect()
        with redis.Redis.from_url(redis_url) as client:
            client.set("spoilt", b"\xff")
        with pytest.raises(redis.exceptions.InvalidResponse, match="no UTF-8"):
            await connection.ask(("GET", "spoilt"))
        assert await connection.ask(("ECHO", "on")) == "on"
        await connection.close()

    run(scenario)
