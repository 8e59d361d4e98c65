"""Sentinels put a replica in a primary's place while everything runs: what is lost, what is noticed, who goes where."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from drill.children import Children
from drill.server import ServerKind
from sluicegate import functions
from sluicegate.errors import StoreError
from sluicegate.producer import Producer
from sluicegate.settings import Settings
from sluicegate.store import Store
from tests.failing_over import Load, controlled, settings_behind, under_load
from tests.invariants import assert_invariants
from tests.queues import store_of, wait_until
from tests.topologies import Watched
from tests.working import RunningWorker

# The Sentinels tell a primary that it was replaced after ten seconds.
WITHIN_S = 40.0
_BOTH = [
    pytest.param(ServerKind.REDIS, id="redis"),
    pytest.param(ServerKind.VALKEY, id="valkey", marks=pytest.mark.slow),
]


@pytest.fixture(params=_BOTH)
def watched(request: pytest.FixtureRequest, children: Children) -> Watched:
    return Watched(children, request.param)


@pytest.fixture
def settings(watched: Watched, tmp_path: Path) -> Settings:
    # Not every test has a controller, and a failover takes longer than the tests' own bound.
    return settings_behind(watched, tmp_path, controller_silent_s=3600)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with store_of(settings) as made:
        yield made


def takes_over(watched: Watched, new: str) -> None:
    wait_until(lambda: watched.is_primary(new) and watched.all_name(new), f"{new} as the primary", WITHIN_S)


def fails_over(watched: Watched, old: str, new: str, load: Load) -> None:
    """Kill the primary and wait until both producers are served by the other."""
    watched.kill(old)
    takes_over(watched, new)
    accepted = len(load.accepted)
    wait_until(lambda: load.by_both(accepted), "jobs accepted by the new primary", WITHIN_S)


def nothing_is_unfinished(store: Store) -> bool:
    telemetry = store.observe()
    return telemetry.ready + telemetry.delayed + telemetry.worker_inflight == 0


def states_of(store: Store, keys: set[str]) -> set[str]:
    found = [store.job(key) for key in keys]
    return {one["job"]["state"] if one is not None else "lost" for one in found}


@pytest.mark.parametrize("back", [False, pytest.param(True, id="and-back", marks=pytest.mark.slow)])
@pytest.mark.timeout(180)
def test_a_killed_primary_costs_a_pause_and_nothing_that_its_replica_had(
    store: Store, settings: Settings, watched: Watched, back: bool
) -> None:
    with under_load(settings) as (load, worker):
        wait_until(lambda: len(load.calls) >= 20, "calls", WITHIN_S)
        epoch = store.observe().gate.epoch
        accepted, called = dict(load.accepted), set(load.calls)
        watched.in_step()
        fails_over(watched, "one", "two", load)
        now = "two"
        if back:
            watched.bring_back("one")
            wait_until(lambda: watched.is_replica_of("one", "two"), "the old primary as a replica", WITHIN_S)
            fails_over(watched, "two", "one", load)
            now = "one"
        load.end_submitting()
        wait_until(lambda: nothing_is_unfinished(store), "an end of every job", WITHIN_S)
        wait_until(lambda: load.scrapes[-1].complete, "a whole page of the exporter", WITHIN_S)
        gate = store.observe().gate

    assert states_of(store, set(accepted)) <= {"succeeded", "unknown"}
    unsafe = {key for key in called if accepted.get(key) == "send-mail"}
    assert {key: load.calls[key] for key in unsafe if len(load.calls[key]) > 1} == {}
    fences = [[fence for _, fence in calls] for calls in load.calls.values()]
    assert all(one == sorted(set(one)) for one in fences), "a fence came twice, or went back"
    assert (gate.drain_state, gate.pin, gate.epoch >= epoch) == ("admit", None, True)
    assert_invariants(watched.clients[now])
    assert functions.LIBRARY in str(watched.clients[now].function_list())
    dark = [reading for scrape in load.scrapes for reading in scrape.readings if not reading.redis_up]
    assert dark
    assert all(reading.telemetry is None for reading in dark)
    assert 1 <= len(worker.said("store_unavailable")) <= 6
    assert len(worker.said("store_available")) == len(worker.said("store_unavailable"))


@pytest.mark.slow
@pytest.mark.parametrize("least", [0, 1], ids=["it takes writes", "it wants a replica"])
def test_nothing_is_written_any_more_to_a_primary_that_goes_on_after_another_took_its_place(
    store: Store, watched: Watched, least: int
) -> None:
    """As after a pause of its machine: it is a primary still, until the Sentinels tell it, and takes connections."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: store.observe(), range(64)))
        idle = len(clients_of(watched.clients["one"]))
        watched.clients["one"].config_set("min-replicas-to-write", least)
        watched.in_step()
        watched.pause("one")
        takes_over(watched, "two")
        watched.resume("one")
        wait_until(lambda: watched.info("one")["connected_slaves"] == 0, "a primary without a replica", WITHIN_S)
        assert idle > 1

        wait_until(lambda: submitted(store, "first"), "a submission to the new primary", WITHIN_S)
        assert clients_of(watched.clients["one"]) == []
        assert all(threads.map(lambda number: submitted(store, f"k{number}"), range(64)))

    assert watched.clients["two"].exists("job:first", *(f"job:k{number}" for number in range(64))) == 65
    assert watched.clients["one"].exists("job:first") == 0


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_an_order_that_is_lost_with_the_primary_and_the_controller_opens_no_gate(
    store: Store, settings: Settings, watched: Watched
) -> None:
    """One machine had both: what its workers have seen closes the gate for a controller that has seen nothing."""
    with RunningWorker("", Load(settings).handle, store=Store.of(settings)) as worker:
        worker.wait_for("gate_seen", drain_state="admit")
        watched.in_step()
        watched.cut_off()
        assert store.order("drain", "ada", "the provider loses what it is sent").answer == "moved"
        worker.wait_for("gate_seen", drain_state="drain")
        watched.kill("one")
        takes_over(watched, "two")
        assert watched.clients["two"].get("drain_state") == "admit"

        asyncio.run(_until_closed(settings, watched))

        gate = store.observe().gate
        assert (gate.drain_state, gate.pin, gate.actor) == ("drain", "control_data_lost", "controller")
        assert not submitted(Store.of(settings), "late")


async def _until_closed(settings: Settings, watched: Watched) -> None:
    # The worker's claim may come after the first look of a controller that has seen nothing, and before the next.
    async with controlled(settings):
        await asyncio.to_thread(
            wait_until, lambda: watched.clients["two"].get("drain_state") == "drain", "the gate closed", WITHIN_S
        )


def clients_of(client: Any) -> list[str]:
    """Give the ids of the clients that have called a function."""
    return [one["id"] for one in client.client_list() if one["cmd"].startswith(("fcall", "evalsha", "eval"))]


def submitted(store: Store, key: str) -> bool:
    try:
        return Producer(store).submit("lint-fix", "{}", idempotency_key=key).accepted
    except StoreError:
        return False
