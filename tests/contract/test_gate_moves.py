"""How the gate moves on real servers: its epoch, its log, dwell and pins, and who may move it (contract §6, §7)."""

from __future__ import annotations

import json

import pytest

from sluicegate import keys
from sluicegate.store import Store
from tests.contract.gate_actors import Led, now_us, opened
from tests.queues import OpenQueue, OpenQueueFunction, wait_until


@pytest.fixture
def led(queue: OpenQueue) -> Led:
    return Led(queue)


# Epoch and log.


def test_a_move_takes_the_servers_time_for_its_epoch(led: Led) -> None:
    before = now_us(led.queue)
    answer = led.decide("drain")
    assert before <= answer.epoch <= now_us(led.queue)
    assert answer.epoch == led.gate().epoch == int(led.queue.client.get(keys.EPOCH))


def test_a_move_raises_an_epoch_that_is_ahead_of_the_servers_time_by_one(led: Led) -> None:
    ahead = now_us(led.queue) + 3_600_000_000
    led.queue.client.set(keys.EPOCH, str(ahead))
    assert led.decide("reject_new").epoch == ahead + 1
    assert led.decide("drain").epoch == ahead + 2


def test_data_that_fell_behind_is_closed_once_though_the_servers_clock_is_behind_too(led: Led) -> None:
    """As after a failover to a replica: neither its data nor its time are as far as what was seen."""
    ahead = now_us(led.queue) + 3_600_000_000
    fell_back_to = str(led.gate().epoch)
    led.queue.client.set(keys.EPOCH, str(ahead))
    assert led.gate().epoch == ahead
    led.queue.client.set(keys.EPOCH, fell_back_to)

    answers = [led.decide("hold") for _ in range(3)]

    assert [(answer.answer, answer.epoch) for answer in answers] == [("moved", ahead + 1)] + 2 * [
        ("unchanged", ahead + 1)
    ]
    assert (led.gate().drain_state, led.gate().pin) == ("drain", "control_data_lost")
    assert led.queue.store.order("open", "ada", "looked at what was lost").answer == "moved"
    assert led.gate().drain_state == "admit"


def test_a_move_is_logged_once_with_everything_that_is_known_of_it(led: Led) -> None:
    led.decide("drain")
    led.decide("drain")
    led.decide("hold")

    entries = led.queue.store.gate_log()
    assert [(entry.from_state, entry.to_state, entry.reason, entry.actor) for entry in entries] == [
        ("admit", "drain", "because_drain", "controller"),
        ("drain", "admit", "init", "ada"),
    ]
    assert json.loads(entries[0].figures) == {"age": 1}
    assert entries[0].epoch == led.gate().epoch
    assert abs(entries[0].at_ms - entries[0].epoch // 1000) <= 1


@pytest.mark.parametrize("order", ["open", "drain", "reject", "hold", "release"])
def test_a_persons_move_names_them_and_their_reason(led: Led, order: str) -> None:
    led.queue.store.order("hold", "grace", "to look")
    assert led.queue.store.order(order, "ada", "because").answer == "moved"
    entry = led.queue.store.gate_log(1)[0]
    assert (entry.reason, entry.actor) == (f"operator_{order}", "ada")
    assert entry.note.startswith("because")
    assert entry.to_state == led.gate().drain_state


# The hysteresis.


def test_the_dwell_doubles_up_to_its_most_and_starts_anew_after_a_calm_time(open_queue: OpenQueueFunction) -> None:
    timings = {"reject_dwell_s": 0.05, "reject_dwell_max_s": 0.2, "reject_return_s": 60}
    led = Led(open_queue(timings=timings))
    dwells = [led.return_from_reject() for _ in range(4)]

    assert [dwell for dwell, _ in dwells] == [50, 100, 200, 200]
    assert all(dwell <= took for dwell, took in dwells)

    led.queue.client.hset(keys.GATE, "left_reject_at", str(now_us(led.queue) // 1000 - 61_000))
    assert led.return_from_reject()[0] == 50


def test_a_person_who_opens_ends_the_doubling(open_queue: OpenQueueFunction) -> None:
    led = Led(open_queue(timings={"reject_dwell_s": 0.05, "reject_dwell_max_s": 0.2, "reject_return_s": 60}))
    assert [led.return_from_reject()[0] for _ in range(2)] == [50, 100]
    led.queue.store.order("open", "ada", "all is well")
    assert led.return_from_reject()[0] == 50


def test_the_exit_condition_must_hold_without_a_break(open_queue: OpenQueueFunction) -> None:
    led = Led(open_queue(timings={"reject_dwell_s": 0.2}))
    led.decide("reject_new")
    led.decide("admit", exit_ok=True)
    first = int(led.record()["ok_since"])
    assert first > 0
    led.decide("hold", exit_ok=False)
    assert led.record()["ok_since"] == "0"
    wait_until(lambda: now_us(led.queue) // 1000 > first + 200, "the dwell of the first look")
    assert led.decide("admit", exit_ok=True).answer == "unchanged"
    assert led.gate().drain_state == "reject_new"


def test_a_decision_of_an_older_epoch_opens_nothing_and_starts_no_dwell(open_queue: OpenQueueFunction) -> None:
    led = Led(open_queue(timings={"reject_dwell_s": 0.05}))
    old = led.gate().epoch
    led.decide("reject_new")
    assert led.decide("admit", exit_ok=True, epoch=old).answer == "unchanged"
    assert led.record()["ok_since"] == "0"
    assert led.decide("drain", epoch=old).answer == "moved"


# A second drain, and what forbids a run.


@pytest.mark.parametrize(("ago_ms", "pin"), [(0, "repeated_drain"), (719_000, "repeated_drain"), (721_000, None)])
def test_a_drain_soon_after_a_reopening_pins(led: Led, ago_ms: int, pin: str | None) -> None:
    """The tests' contract is five times as fast: second_drain_s is 720."""
    led.queue.store.order("open", "ada", "fixed")
    led.queue.client.hset(keys.GATE, "reopened_at", str(now_us(led.queue) // 1000 - ago_ms))
    led.decide("drain")
    assert (led.gate().drain_state, led.gate().pin) == ("drain", pin)


def forbid(queue: OpenQueue, how: str) -> None:
    now_ms = now_us(queue) // 1000
    if how == "kill_switch":
        queue.store.kill_switch(on=True, actor="ada", reason="a test")
    elif how == "cooldown":
        assert opened(queue, trigger="person", run="run-0").answer == "moved"
        queue.store.order("open_end_run", "ada", "a test")
        queue.client.hset(keys.GATE, "reopened_at", "0")
    else:
        queue.client.zadd(keys.RUNS_RECENT, {f"run-{n}": now_ms - 1000 * n for n in range(7, 10)})


FORBIDDEN = ["kill_switch", "cooldown", "runs_per_hour"]


@pytest.mark.parametrize("trigger", ["webhook", "timer"])
@pytest.mark.parametrize("how", FORBIDDEN)
def test_what_forbids_a_run_pins_an_unpinned_drain_and_moves_nothing_else(led: Led, how: str, trigger: str) -> None:
    queue = led.queue
    forbid(queue, how)
    open_before = led.gate()

    answer = opened(queue, trigger=trigger)

    assert (answer.answer, answer.why, answer.run) == ("refused", how, "")
    assert led.gate() == open_before

    led.decide("drain")
    assert led.gate().pin is None
    assert opened(queue, trigger=trigger).answer == "refused"
    gate = led.gate()
    assert (gate.drain_state, gate.pin, gate.pin_note, gate.run) == ("drain", "run_refused", how, None)

    queue.store.order("hold", "ada", "mine")
    held = led.gate()
    assert opened(queue, trigger=trigger).answer == "suppressed"
    assert led.gate() == held


@pytest.mark.parametrize("how", FORBIDDEN)
def test_nothing_forbids_a_persons_run(led: Led, how: str) -> None:
    forbid(led.queue, how)
    led.decide("drain")
    assert opened(led.queue, trigger="webhook").answer == "refused"
    assert opened(led.queue, trigger="person").answer == "moved"
    gate = led.gate()
    assert (gate.drain_state, gate.pin) == ("drain", None)
    assert gate.run is not None


def test_only_the_runs_of_the_last_hour_count(led: Led) -> None:
    hour_ago = now_us(led.queue) // 1000 - 3_601_000
    led.queue.client.zadd(keys.RUNS_RECENT, {f"run-{n}": hour_ago for n in range(7, 10)})
    assert opened(led.queue).answer == "moved"


# Who leads.


def test_only_the_controller_that_leads_moves_the_gate_until_its_lease_ends(open_queue: OpenQueueFunction) -> None:
    led = Led(open_queue(timings={"controller_lease_s": 0.3}))
    other = Store.connect(led.queue.url)
    assert other.lead("c2") == (False, "")
    epoch = led.gate().epoch
    for fence in ("", "0", str(int(led.fence) + 1)):
        refused = other.move_gate(action="drain", reason="x", exit_ok=False, epoch=epoch, fence=fence, figures="{}")
        assert refused.answer == "stale"
    assert led.gate().drain_state == "admit"

    wait_until(lambda: other.lead("c2")[0], "the other one takes over")
    _, fence = other.lead("c2")
    assert int(fence) > int(led.fence)
    assert led.queue.store.lead("c1") == (False, "")
    assert led.decide("drain").answer == "stale"
    taken = other.move_gate(action="drain", reason="x", exit_ok=False, epoch=epoch, fence=fence, figures="{}")
    assert taken.drain_state == "drain"
    other.close()


def test_a_controller_that_does_not_lead_adopts_nothing(led: Led) -> None:
    led.queue.client.set(keys.DRAIN_STATE, "drain")
    gate = led.queue.store.tick("0").gate
    assert (gate.drain_state, gate.pin) == ("drain", None)
    assert led.queue.store.tick(led.fence).gate.pin == "hand_edit"
