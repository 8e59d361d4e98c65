"""What holds over all queues of a server: two runs at once, the breaker and the switch, in however many processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from automation import opening as module
from automation.opening import Opening
from automation.place import Place
from drill.server import AppendFsync, ServerKind, ServerOptions
from sluicegate.all_queues import NAME, AllQueues, Holder, Standing
from sluicegate.errors import StoreUnavailable
from sluicegate.replies import GateAnswer
from sluicegate.service_settings import WeakServer
from sluicegate.store import Store
from tests.automation_parts import Parts, quick
from tests.queues import OpenQueue, contract_of
from tests.servers import MakeServer
from tests.webhooks import drained

NOWHERE = "redis://127.0.0.1:1/0"


class Host:
    """Hold several queues of one server, and the ways to open runs on them that processes of their own would have."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._url, self._stack = url, stack
        self.everywhere = self._closing(AllQueues.connect(url, NAME))
        self.queues: dict[str, OpenQueue] = {}

    def _closing(self, made: Any) -> Any:
        self._stack.callback(made.close)
        return made

    def queue(self, name: str, **changes: Any) -> OpenQueue:
        if name not in self.queues:
            self.queues[name] = self._closing(OpenQueue(self._url, contract_of(**changes), name))
        return self.queues[name]

    def opening(self, name: str, everywhere: str = "", others: str = "") -> Opening:
        """Give one process's way; where it looks for all queues, and for the other ones, may be elsewhere."""
        store = self._closing(Store.connect(self._url, name))
        over_all = self._closing(AllQueues.connect(everywhere or self._url, NAME))
        return Opening(store, over_all, lambda queue: Store.connect(others or self._url, queue, read_only=True))

    def ask(self, name: str, run: str = "", **changes: Any) -> GateAnswer:
        """Ask for a run on a queue as an alert does, confirmed unless told otherwise."""
        queue = self.queue(name)
        return self.opening(name).ask(request(run or f"{queue.store.queue}-run", **changes))

    def live(self) -> set[str]:
        return {holder.queue for holder in self.everywhere.standing().holders}


def request(run: str, **changes: Any) -> dict[str, Any]:
    body = {"runbook": "drain-and-recover", "trigger": "webhook", "run": run, "actor": "alertmanager"}
    return body | {"reason": "a test", "confirmed": True, "digest": "", "episode": ""} | changes


@pytest.fixture
def host(redis_url: str) -> Iterator[Host]:
    with ExitStack() as stack:
        yield Host(redis_url, stack)


def test_a_third_run_at_once_is_refused_and_moves_no_gate(host: Host) -> None:
    assert [host.ask(name).answer for name in ("one", "two")] == ["moved", "moved"]
    assert host.live() == {"one", "two"}

    answer = host.ask("three")

    assert (answer.answer, answer.why, answer.run) == ("refused", "concurrent_runs", "")
    gate = host.queue("three").store.observe().gate
    assert (gate.drain_state, gate.pin, gate.run) == ("admit", None, None)
    assert host.queue("three").counters()["runs_refused:concurrent_runs"] == 1
    # The run that is live already is no third one: its alert attaches.
    assert host.ask("one", "another").answer == "attached"


def test_where_the_gate_is_drained_already_the_refusal_pins_it(host: Host) -> None:
    host.ask("one")
    host.ask("two")
    three = host.queue("three")
    three.store.order("drain", "ada", "a test", pin=False)

    assert host.ask("three").answer == "refused"

    gate = three.store.observe().gate
    assert (gate.drain_state, gate.pin, gate.pin_note) == ("drain", "run_refused", "concurrent_runs")


def test_a_named_person_and_an_audit_are_bound_by_none_of_it(host: Host) -> None:
    host.ask("one")
    host.ask("two")
    host.everywhere.kill_switch(on=True, actor="ada", reason="a test")
    person = host.queue("three").store.open_run(request("three-run", trigger="person"))
    assert person.answer == "moved"
    four = host.queue("four")
    four.store.confirm_duplicate("k1", actor="ada", note="two effects")
    audit = host.ask("four", runbook="rollback-and-audit")
    assert audit.answer == "moved"


def test_a_run_that_holds_no_lock_takes_no_place_but_obeys_the_switch_and_the_breaker(host: Host) -> None:
    host.ask("one")
    host.ask("two")
    assert host.ask("three", runbook="hold-recovery").answer == "moved"
    assert host.live() == {"one", "two"}
    host.everywhere.kill_switch(on=True, actor="ada", reason="a test")
    assert host.ask("three", "another", runbook="reconcile-unknown").why == "kill_switch"
    host.everywhere.kill_switch(on=False, actor="ada", reason="a test")
    for name in ("four", "five"):
        host.everywhere.permit(name, "r", {"limit": 9, "storm_queues": 2, "storm_ms": 60_000})
    assert host.ask("three", "another", runbook="reconcile-unknown").why == "breaker"


def test_whoever_finds_the_house_full_looks_whether_the_others_are_over(host: Host) -> None:
    host.ask("one")
    host.ask("two")
    # Its process died: nobody says that the run is over.
    host.queue("one").store.order("open_end_run", "ada", "a test")

    assert host.ask("three").answer == "moved"
    assert host.live() == {"two", "three"}


def test_a_permit_that_its_holder_never_used_is_worth_nothing_after_a_while(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        host.queue(name)
        host.everywhere.permit(name, "died-before-it", {"limit": 2, "storm_queues": 9, "storm_ms": 1000})
    assert host.ask("three").answer == "refused"
    monkeypatch.setattr(module, "_OPENED_WITHIN_MS", -1)
    assert host.ask("three").answer == "moved"


class Meanwhile(AllQueues):
    """Let something happen between the two questions to the queue."""

    happens: Callable[[], object]

    def permit(self, queue: str, run: str, limits: Mapping[str, int], gone: Sequence[Holder] = ()) -> Standing:
        self.happens()
        return super().permit(queue, run, limits, gone)


def test_a_run_that_was_not_opened_after_all_leaves_its_place(host: Host, redis_url: str) -> None:
    one = host.queue("one").store
    everywhere = Meanwhile.connect(redis_url, NAME)
    everywhere.happens = lambda: one.order("hold", "ada", "mine")
    answer = Opening(one, everywhere, lambda queue: Store.connect(redis_url, queue)).ask(request("one-run"))
    everywhere.close()
    assert answer.answer == "suppressed"
    assert host.live() == set()


def test_of_two_who_ask_for_one_queue_at_once_the_run_that_is_opened_keeps_its_place(
    host: Host, redis_url: str
) -> None:
    one = host.queue("one").store
    everywhere = Meanwhile.connect(redis_url, NAME)
    everywhere.happens = lambda: host.ask("one", "the-first")
    answer = Opening(one, everywhere, lambda queue: Store.connect(redis_url, queue)).ask(request("the-second"))
    everywhere.close()
    assert (answer.answer, answer.run) == ("attached", "the-first")
    assert [holder.run for holder in host.everywhere.standing().holders] == ["the-first"]


def test_an_owned_run_has_its_place_back_where_an_asker_died_with_it(redis_url: str, tmp_path: Path) -> None:
    now = [0.0]

    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), controller=False, executor=False, workers=0) as parts:
            place = Place(parts.everywhere, "default", lambda: now[0])
            await place.keep("r1")
            parts.everywhere.permit("default", "died", {"limit": 2, "storm_queues": 9, "storm_ms": 1000})
            await place.keep("r1")
            assert [holder.run for holder in parts.everywhere.standing().holders] == ["died"]
            now[0] = 10.0
            await place.keep("r1")
            (holder,) = parts.everywhere.standing().holders
            assert holder.run == "r1"
            now[0] = 20.0
            await place.keep("r1")
            assert parts.everywhere.standing().holders == (holder,), "since when it is live stays the same"
            await place.keep("")
            assert parts.everywhere.standing().holders == ()

    asyncio.run(scenario())


def test_what_cannot_be_looked_at_counts_as_live(host: Host) -> None:
    host.ask("one")
    host.ask("two")
    host.queue("one").store.order("open_end_run", "ada", "a test")
    host.queue("three")

    answer = host.opening("three", others=NOWHERE).ask(request("three-run"))

    assert (answer.answer, answer.why) == ("refused", "concurrent_runs")


def test_where_all_queues_cannot_be_asked_nothing_is_opened_and_no_gate_moves(host: Host) -> None:
    before = host.queue("one").store.observe().gate
    with pytest.raises(StoreUnavailable):
        host.opening("one", everywhere=NOWHERE).ask(request("one-run"))
    assert host.queue("one").store.observe().gate == before


def test_of_many_processes_that_ask_at_once_two_open_a_run(host: Host) -> None:
    names = [f"q{number}" for number in range(8)]
    for name in names:
        host.queue(name, storm_queues=100)
    openings = {name: host.opening(name) for name in names for _ in range(2)}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda name: openings[name].ask(request(f"{name}-run")).answer, names))
    assert sorted(answers) == ["moved"] * 2 + ["refused"] * 6
    assert len(host.live()) == 2


# The breaker.


def test_many_queues_that_ask_at_once_trip_the_breaker_until_a_person_resets_it(host: Host) -> None:
    limits = {"concurrent_runs": 100, "storm_queues": 4}
    for number in range(5):
        host.queue(f"q{number}", **limits)
    assert [host.ask(f"q{number}").answer for number in range(3)] == ["moved"] * 3

    answer = host.ask("q3")

    assert (answer.answer, answer.why) == ("refused", "breaker")
    breaker = host.everywhere.standing().breaker
    assert breaker is not None
    assert breaker.said == "4 queues asked for a run within 60 s"
    assert host.ask("q4").why == "breaker"
    assert host.everywhere.reset_breaker("ada", "the monitoring is mended") is True
    assert host.everywhere.reset_breaker("ada", "again") is False
    assert host.ask("q4").answer == "moved"


def test_one_queue_that_asks_again_and_again_is_no_storm(host: Host) -> None:
    host.queue("q0", storm_queues=2, concurrent_runs=1)
    host.everywhere.hold_place("elsewhere", "of-nobody")
    for number in range(5):
        assert host.ask("q0", f"run-{number}").why == "concurrent_runs"
    assert host.everywhere.standing().breaker is None


# The switch, and what both do to a run that is live.


def test_the_switch_over_all_queues_forbids_and_survives_a_restart(make_server: MakeServer) -> None:
    server = make_server(ServerOptions(kind=ServerKind.REDIS, append_only=True, append_fsync=AppendFsync.ALWAYS))
    with ExitStack() as stack:
        host = Host(server.url, stack)
        host.queue("one")
        host.everywhere.kill_switch(on=True, actor="ada", reason="maintenance")
        server.kill()
        server.restart()
        answer = host.ask("one")
        assert (answer.answer, answer.why) == ("refused", "kill_switch")
        host.everywhere.kill_switch(on=False, actor="ada", reason="done")
        assert host.ask("one").answer == "moved"


@pytest.mark.parametrize("trigger", ["webhook", "person"])
def test_the_switch_over_all_queues_rolls_a_live_run_back_whoever_opened_it(
    redis_url: str, tmp_path: Path, trigger: str
) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), controller=False) as parts:
            if trigger == "person":
                run = parts.open_run()
            else:
                drained(parts)
                run = parts.opening.ask(request("run-1")).run
                # This executor has this runbook, of whatever digest.
            await parts.until_step(run, "freeze")
            assert {holder.run for holder in parts.everywhere.standing().holders} == {run}
            parts.everywhere.kill_switch(on=True, actor="ada", reason="maintenance")

            history = await parts.until_ended(run, "rolled_back")

            assert history.run.rollback_reason == "manual_operator_hold"
            assert parts.state() == ("drain", "rolled_back", "manual_operator_hold")
            await parts.until(lambda: not parts.everywhere.standing().holders, "its place is left")
            # A run that a person opens under it is theirs.
            again = parts.open_run()
            await parts.until_step(again, "fix")
            assert parts.history(again).run.live

    asyncio.run(scenario())


def test_the_switch_over_all_queues_ends_the_runs_that_hold_no_lock(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), controller=False) as parts:
            asked = request("run-1", runbook="hold-recovery", trigger="person")
            run = parts.opening.ask(asked).run
            await parts.until_step(run, "wait_for")
            parts.everywhere.kill_switch(on=True, actor="ada", reason="maintenance")

            history = await parts.until_ended(run, "aborted")

            assert history.run.ended_why == "kill_switch: the kill switch of all queues is on: ada: maintenance"
            assert parts.state() == ("admit", None, None)
            # A run that a person opens under it is theirs.
            again = parts.open_run("reconcile-unknown")
            await parts.until_ended(again, "succeeded")

    asyncio.run(scenario())


def test_the_breaker_rolls_back_the_run_that_an_alert_opened_and_not_a_persons(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), controller=False) as parts:
            drained(parts)
            run = parts.opening.ask(request("run-1")).run
            await parts.until_step(run, "freeze")
            for number in range(5):
                parts.everywhere.permit(f"q{number}", "r", {"limit": 9, "storm_queues": 5, "storm_ms": 60_000})
            history = await parts.until_ended(run, "rolled_back")
            assert history.run.rollback_reason == "manual_operator_hold"
            again = parts.open_run()
            await parts.until_step(again, "fix")
            assert parts.history(again).run.live

    asyncio.run(scenario())


def test_a_run_makes_no_step_while_all_queues_cannot_be_asked(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), controller=False, executor=False) as parts:
            run = parts.open_run()
            parts.everywhere.close()
            parts.executor._everywhere = AllQueues.connect(NOWHERE, NAME)
            await parts.executor.look()  # the step's line is written; it needs no permission
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await parts.executor.look()
            assert parts.journal(run, "done") == []

    asyncio.run(scenario())


# What the server keeps.


@pytest.mark.parametrize("append_only", [True, False])
def test_on_a_server_that_keeps_nothing_only_a_named_person_opens_runs_where_it_is_so_set(
    make_server: MakeServer, append_only: bool
) -> None:
    server = make_server(ServerOptions(kind=ServerKind.REDIS, append_only=append_only))
    with ExitStack() as stack:
        host = Host(server.url, stack)
        one = host.queue("one").store
        opening = Opening(one, host.everywhere, lambda queue: Store.connect(server.url, queue), WeakServer.REFUSE)
        one.order("drain", "ada", "a test", pin=False)
        answer = opening.ask(request("one-run"))
        if append_only:
            assert answer.answer == "moved"
            return
        assert (answer.answer, answer.why) == ("refused", "weak_server")
        assert one.observe().gate.pin_note == "weak_server"
        assert host.live() == set()
        assert one.open_run(request("by-name", trigger="person")).answer == "moved"
