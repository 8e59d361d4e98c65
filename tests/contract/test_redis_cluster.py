"""A queue in a real cluster of three: found, followed when its slot moves, and honestly missing while its node is."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from automation.opening import Opening
from drill.children import Children
from drill.ports import free_port
from drill.server import ServerKind
from exporter.server import Exporter
from sluicegate import functions, redis_clients
from sluicegate.__main__ import dispatch
from sluicegate.all_queues import AllQueues
from sluicegate.async_producer import AsyncProducer
from sluicegate.calls import library_of
from sluicegate.cli_doctor import look
from sluicegate.console import opened
from sluicegate.doctor import examine
from sluicegate.errors import SluicegateError, StoreRejected, StoreUnavailable, UsageError
from sluicegate.job import Call, CallKind, Job
from sluicegate.producer import Producer
from sluicegate.redis_clients import Access
from sluicegate.redis_servers import Cluster
from sluicegate.redis_settings import host_and_port
from sluicegate.restore import Wish, restore
from sluicegate.server_findings import Level
from sluicegate.settings import Settings, WorkerSettings, default_settings
from sluicegate.snapshot import write_snapshot
from sluicegate.store import Store
from sluicegate.worker import Worker
from tests.queues import open_with, wait_until
from tests.topologies import Nodes, start_server

QUEUE = "mill"
GATE = "{mill}:control:gate"
NEW, WITHOUT = functions.digest_of(functions.library()), "none"


@pytest.fixture(scope="module", params=[ServerKind.REDIS, ServerKind.VALKEY], ids=str)
def cluster(request: pytest.FixtureRequest, session_children: Children) -> Nodes:
    return Nodes(session_children, request.param)


@pytest.fixture
def nodes(cluster: Nodes) -> Nodes:
    cluster.empty()
    return cluster


@pytest.fixture(scope="module")
def alone(cluster: Nodes, session_children: Children) -> int:
    """Start one more node, which no other has met and which has no slot, and give its port."""
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-require-full-coverage", "no")
    return start_server(session_children, cluster.kind, f"{cluster.kind}-alone", *options)


def settings_of(nodes: Nodes, **changes: Any) -> Settings:
    body = default_settings().model_dump(mode="json")
    body |= {"queue": QUEUE, "redis": {"cluster_nodes": list(nodes.addresses)}}
    body["exporter"] |= {"port": 0, "scrape_budget_s": 1.0}
    return Settings.model_validate(body | changes)


@pytest.fixture
def store(nodes: Nodes) -> Iterator[Store]:
    """Open the queue and give its store."""
    settings = settings_of(nodes)
    made = Store.of(settings)
    contract = settings.contract
    open_with(made, contract)
    yield made
    made.close()


def submitted(store: Store) -> str:
    decision = Producer(store).submit("lint-fix", "{}")
    assert decision.accepted, decision
    return decision.job_id


def test_every_primary_has_the_library_and_one_has_all_keys(store: Store, nodes: Nodes) -> None:
    submitted(store)

    assert all(functions.LIBRARY in str(client.function_list()) for client in nodes.clients)
    assert [bool(client.dbsize()) for client in nodes.clients] == [n == nodes.owner(GATE) for n in range(3)]


def test_a_worker_a_producer_and_the_controller_s_calls_reach_the_queue(store: Store, nodes: Nodes) -> None:
    done: asyncio.Queue[str] = asyncio.Queue()

    async def handler(job: Job, timeout_s: float) -> Call:
        await done.put(job.job_id)
        return Call(CallKind.OK, 0.01, 200)

    async def work() -> None:
        theirs = Store.of(settings_of(nodes))
        worker = Worker(theirs, handler, WorkerSettings())
        running = asyncio.create_task(worker.run())
        job_id = await asyncio.to_thread(submitted, store)
        assert await done.get() == job_id
        worker.stop()
        await running
        theirs.close()

    asyncio.run(asyncio.wait_for(work(), 10))

    leading, fence = store.lead("ada's controller")
    assert leading
    assert store.tick(fence).counters["met"] == 1


def test_a_batch_that_is_submitted_by_an_event_loop_keeps_its_order(store: Store, nodes: Nodes) -> None:
    asked: list[str] = []

    async def submit() -> None:
        async with AsyncProducer(store) as producer:
            many = [producer.prepare("lint-fix", "{}") for _ in range(400)]
            asked.extend(one.job_id for one in many)
            await producer.submit_many(many)

    asyncio.run(asyncio.wait_for(submit(), 10))

    # Of those that there is room for the first, and these in their order.
    taken = store.list_jobs("ready", 1000)
    assert 100 < len(taken) < 400
    assert list(taken) == asked[: len(taken)]


def test_a_queue_is_written_down_and_put_back_whichever_node_is_asked_first(
    store: Store, nodes: Nodes, tmp_path: Path
) -> None:
    jobs = {submitted(store) for _ in range(3)}
    assert write_snapshot(store, tmp_path / "s.jsonl.gz").jobs == 3
    nodes.empty()
    for first in range(3):
        addresses = [*nodes.addresses[first:], *nodes.addresses[:first]]
        fresh = Store.of(settings_of(nodes, redis={"cluster_nodes": addresses}))
        result = restore(fresh, Wish(tmp_path / "s.jsonl.gz", "bob", "the cluster was lost"))
        assert result.counts == ({"kept": 3} if first else {"ready": 3})
        assert set(fresh.list_jobs("ready")) == jobs
        assert write_snapshot(fresh, tmp_path / "again.jsonl.gz").jobs == 3
        fresh.close()


def test_a_run_is_opened_within_limits_that_lie_on_another_node(store: Store, nodes: Nodes) -> None:
    settings = settings_of(nodes)
    assert nodes.owner(GATE) != nodes.owner("{sluicegate}:all:runs")
    everywhere = AllQueues.over(settings)
    opening = Opening(store, everywhere, lambda queue: Store.of(settings, queue, read_only=True))
    asked = {"runbook": "drain-and-recover", "trigger": "webhook", "actor": "alertmanager", "reason": "a test"}
    asked |= {"confirmed": "1", "digest": "", "episode": ""}
    try:
        assert opening.ask(asked | {"run": "run-1"}).answer == "moved"
        (holder,) = everywhere.standing().holders
        assert (holder.queue, holder.run) == (QUEUE, "run-1")
        store.order("open_end_run", "ada", "a test")
        for other in ("one", "two"):
            everywhere.hold_place(other, "of-nobody")
        store.order("drain", "ada", "a test", pin=False)
        everywhere.leave_place(QUEUE, "run-1")
        assert opening.ask(asked | {"run": "run-2"}).answer == "refused"
    finally:
        everywhere.close()


def test_a_slot_that_moves_is_followed_at_once_by_who_writes_and_who_reads(store: Store, nodes: Nodes) -> None:
    reader = Store.of(settings_of(nodes), read_only=True)
    first = submitted(store)
    assert reader.observe().ready == 1
    was = nodes.owner(GATE)

    nodes.move(GATE, (was + 1) % 3)
    second = submitted(store)
    figures = reader.observe()
    nodes.move(GATE, was)
    claimed = store.claim("w1", "r1", 2)
    reader.close()

    assert figures.ready == 2
    assert [job.job_id for job in claimed.jobs] == [first, second]


def test_a_slot_in_the_middle_of_a_move_is_unavailable_not_wrong(store: Store, nodes: Nodes) -> None:
    slot, source, target = nodes.slot(GATE), nodes.owner(GATE), (nodes.owner(GATE) + 1) % 3
    ids = [client.execute_command("CLUSTER", "MYID") for client in nodes.clients]
    nodes.clients[target].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    nodes.clients[source].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    nodes.clients[source].execute_command("MIGRATE", "127.0.0.1", nodes.ports[target], GATE, 0, 5000)
    try:
        with pytest.raises((StoreUnavailable, StoreRejected)):
            store.observe()
    finally:
        nodes.move(GATE, target)
    assert store.observe().gate.drain_state == "admit"


def test_a_node_that_hangs_costs_its_queue_a_bounded_wait_and_no_other_queue(store: Store, nodes: Nodes) -> None:
    owner = nodes.owner(GATE)
    elsewhere = next(name for name in ("a", "b", "c", "d", "e", "f") if nodes.owner(f"{{{name}}}:x") != owner)
    other = Store.of(settings_of(nodes, queue=elsewhere))
    contract = default_settings().contract
    open_with(other, contract)
    nodes.pause(owner)
    try:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            store.observe()
        assert time.monotonic() - began < 1.5
        # The first named node may be the one that hangs: another is asked in the same call.
        fresh = Store.of(
            settings_of(nodes, queue=elsewhere, redis={"cluster_nodes": [nodes.addresses[owner], *nodes.addresses]})
        )
        assert submitted(fresh)
        fresh.close()
        assert submitted(other)
    finally:
        nodes.resume(owner)
        other.close()
    wait_until(lambda: answers(store), "the node's answer")


def test_a_node_that_is_gone_is_passed_over_in_the_same_call(store: Store, nodes: Nodes) -> None:
    gone = Store.of(settings_of(nodes, redis={"cluster_nodes": ["127.0.0.1:1", *nodes.addresses]}))
    assert gone.observe().gate.drain_state == "admit"
    gone.close()


def test_a_node_that_knows_no_other_is_passed_over_in_the_same_call(store: Store, nodes: Nodes, alone: int) -> None:
    fresh = Store.of(settings_of(nodes, redis={"cluster_nodes": [f"127.0.0.1:{alone}", *nodes.addresses]}))
    assert submitted(fresh)
    fresh.close()
    assert store.observe().ready == 1


def test_an_owner_that_has_lost_its_slots_is_left_in_the_same_call(store: Store, nodes: Nodes, alone: int) -> None:
    client: Any = redis.Redis(port=alone, decode_responses=True)
    slot = nodes.slot(GATE)
    client.execute_command("CLUSTER", "ADDSLOTS", slot)
    both = Store.of(settings_of(nodes, redis={"cluster_nodes": [f"127.0.0.1:{alone}", *nodes.addresses]}))
    submitted(store)
    wait_until(lambda: serves(client), "a node that serves the slot")
    assert both.observe().ready == 0

    client.execute_command("CLUSTER", "DELSLOTS", slot)

    assert submitted(both)
    assert store.observe().ready == 2
    both.close()
    client.close()


def test_where_every_node_says_that_the_cluster_is_down_the_queue_is_unavailable(nodes: Nodes, alone: int) -> None:
    only = Store.of(settings_of(nodes, redis={"cluster_nodes": [f"127.0.0.1:{alone}"]}))
    with pytest.raises(StoreUnavailable, match=r"cluster is down|slot not served"):
        only.observe()
    only.close()


@pytest.mark.parametrize("further", [1, 2])
def test_another_node_that_hangs_keeps_no_queue_from_being_opened_and_no_other_from_its_library(
    nodes: Nodes, further: int
) -> None:
    owner = nodes.owner(GATE)
    other = (owner + further) % 3
    own_first = [nodes.addresses[number] for number in (owner, other, (owner + 3 - further) % 3)]
    settings = settings_of(nodes, redis={"cluster_nodes": own_first})
    store = Store.of(settings, timeout_s=2.0)
    nodes.pause(other)
    try:
        contract = settings.contract
        open_with(store, contract)
        nodes.clients[owner].function_flush()
        with pytest.raises(StoreUnavailable):
            store.replace_library("ada", "a test")
        began = time.monotonic()
        assert submitted(store)
        assert time.monotonic() - began < 2.0, "the one that hangs was asked"
    finally:
        nodes.resume(other)
    assert submitted(store)
    assert [code(client) for client in nodes.clients].count(NEW) == 2
    # The node that did not answer counts once the person asks again.
    assert store.replace_library("ada", "again")[:2] == (WITHOUT, NEW)
    assert [code(client) for client in nodes.clients] == [NEW] * 3
    assert store.replace_library("ada", "a third time")[:2] == (NEW, NEW)
    assert [entry.note for entry in store.gate_log() if entry.reason == "library_replaced"] == [
        f"{WITHOUT} -> {NEW}: again",
        f"{WITHOUT} -> {NEW}: a test",
    ]
    store.close()


def test_an_upgrade_reaches_every_primary_whichever_node_is_named_first(
    store: Store, nodes: Nodes, alone: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    owner = nodes.owner(GATE)
    others = [nodes.addresses[number] for number in range(3) if number != owner]
    older = functions.library() + "\n-- an older version\n"
    for first in (f"127.0.0.1:{alone}", others[0], nodes.addresses[owner]):
        for client in nodes.clients:
            client.function_load(older, replace=True)
        nodes.clients[nodes.addresses.index(others[0])].function_load(functions.library(), replace=True)
        settings = settings_of(nodes, redis={"cluster_nodes": [first, *others, nodes.addresses[owner]]})
        file = tmp_path / "sluicegate.yaml"
        file.write_text(json.dumps(settings.model_dump(mode="json")))
        assert dispatch(["queue", "doctor", "--settings", str(file)]) == 1
        has_other = f"Primaries of this cluster have other code in the library: {nodes.addresses[owner]}, {others[1]}."
        assert has_other in capsys.readouterr().out

        words = ["queue", "upgrade", "--as", "ann", "--reason", "roll-out", "--settings", str(file)]
        assert dispatch(words) == 0
        assert f"is {NEW} now; it was {functions.digest_of(older)}." in capsys.readouterr().out
        assert [code(client) for client in nodes.clients] == [NEW] * 3
        assert dispatch(words) == 0
        assert f"was {NEW} already." in capsys.readouterr().out
        dispatch(["queue", "doctor", "--settings", str(file)])
        assert "the function library is loaded on every primary" in capsys.readouterr().out


def test_doctor_names_the_primaries_that_lack_the_library_or_do_not_answer(store: Store, nodes: Nodes) -> None:
    hanging, without = ((nodes.owner(GATE) + 1) % 3, (nodes.owner(GATE) + 2) % 3)
    nodes.clients[without].function_flush()
    nodes.pause(hanging)
    try:
        seen = look(store, settings_of(nodes), own_file=False)
    finally:
        nodes.resume(hanging)
    said = {finding.level: finding.said for finding in examine(seen) if finding.name == "cluster"}
    assert set(said) == {Level.WARN, Level.UNSEEN}
    assert nodes.addresses[without] in said[Level.WARN]
    assert nodes.addresses[hanging] in said[Level.UNSEEN]


def test_nodes_that_answer_too_late_for_a_look_are_asked_all_the_same(store: Store, nodes: Nodes) -> None:
    access = Access("redis://any")
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        late = partial(redis_clients.node, replace(access, connect_timeout_s=0.05, timeout_s=0.05))
        slow = Cluster(
            [host_and_port(one) for one in nodes.addresses],
            partial(redis_clients.node, access),
            lambda _, __: late("127.0.0.1", hanging.getsockname()[1]),
            GATE,
        )
        assert slow.ask(("EXISTS", GATE), None) == 1
        slow.close()


def test_a_server_that_is_no_cluster_is_examined(nodes: Nodes, session_children: Children) -> None:
    plain = f"127.0.0.1:{start_server(session_children, nodes.kind, f'{nodes.kind}-plain')}"
    settings = settings_of(nodes, redis={"cluster_nodes": [plain]})
    store = Store.of(settings, read_only=True)
    seen = look(store, settings, own_file=False)
    store.close()
    assert seen.library_by_primary is None
    assert "cluster" not in {finding.name for finding in examine(seen)}


def test_nodes_that_all_hang_cost_a_call_the_time_of_one_connection(nodes: Nodes) -> None:
    with ExitStack() as stack:
        hanging = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(6)]
        places = [f"127.0.0.1:{one.getsockname()[1]}" for one in hanging]
        lost = Store.of(settings_of(nodes, redis={"cluster_nodes": places}))
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            lost.observe(0.5)
        assert time.monotonic() - began < 3.0, "each was waited for as long as the queue's own server"
        lost.close()


def test_the_exporter_reads_a_queue_in_a_cluster(store: Store, nodes: Nodes) -> None:
    submitted(store)
    exporter = Exporter(settings_of(nodes))
    try:
        scrape = asyncio.run(exporter.collector.scrape())
    finally:
        exporter.stop()
    assert scrape.complete, scrape.readings
    figures = scrape.readings[0].telemetry
    assert figures is not None
    assert figures.ready == 1


def test_one_node_s_address_alone_says_what_to_set(store: Store, nodes: Nodes) -> None:
    other = nodes.ports[(nodes.owner(GATE) + 1) % 3]
    alone = settings_of(nodes, redis={}, redis_url=f"redis://127.0.0.1:{other}/0")
    with (
        pytest.raises(SluicegateError, match=r"name the cluster's nodes in redis\.cluster_nodes"),
        opened(alone) as one,
    ):
        one.observe()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"queue": "default"}, "'default' can't live in a cluster"),
        ({"redis_url": "redis://127.0.0.1:6379/3"}, "names the database 3, and a cluster has only 0"),
        ({"redis_url": "unix:///run/redis.sock"}, "is a socket of this machine"),
    ],
)
def test_what_a_cluster_cannot_hold_is_refused(nodes: Nodes, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Store.of(settings_of(nodes, **changes))


def code(client: Any) -> str:
    return library_of(client) or WITHOUT


def serves(client: Any) -> bool:
    try:
        client.get(GATE)
    except redis.exceptions.ClusterDownError:
        return False
    return True


def answers(store: Store) -> bool:
    try:
        store.observe()
    except StoreUnavailable:
        return False
    return True
