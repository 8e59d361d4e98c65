"""The queue's invariants under random commands, crashes, repeats and races, on Redis and on Valkey (DESIGN).

`MACHINE_EXAMPLES=500 python -m pytest tests/contract/test_queue_machine.py -k longer -s` plays so many runs of another
seed each time, and shrinks what it finds.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from drill.server import QueueServer
from sluicegate import functions
from tests.machine.census import Census
from tests.machine.clock import Clock
from tests.machine.faults import FAULTS, Fault
from tests.machine.play import LONGER, Length, play

SOURCE = functions.library()
QUICK = [fault for fault in FAULTS if not fault.hidden]
# A run is about 20 s of work; a machine that others use as well takes several times that.
BUSY_S = 400
HIDDEN = [fault for fault in FAULTS if fault.hidden]


@pytest.mark.timeout(BUSY_S)
def test_every_command_keeps_the_invariants_and_answers_as_expected(server: QueueServer) -> None:
    census = play(server.url, SOURCE, Length())
    print(census)
    assert census.missing() == []


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_longer_run_of_another_seed_keeps_them_too(server: QueueServer) -> None:
    print(play(server.url, SOURCE, Length(examples=int(os.environ.get(LONGER, "100")), drawn_anew=True, shrinks=True)))


@pytest.mark.timeout(BUSY_S)
@pytest.mark.parametrize("fault", QUICK[:3], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(redis_server: QueueServer, fault: Fault) -> None:
    assert_found(redis_server, fault)


@pytest.mark.slow
@pytest.mark.timeout(BUSY_S)
@pytest.mark.parametrize("fault", [*QUICK[3:], *HIDDEN], ids=lambda fault: fault.name)
def test_every_planted_fault_is_found(redis_server: QueueServer, fault: Fault) -> None:
    assert_found(redis_server, fault)


def assert_found(server: QueueServer, fault: Fault) -> None:
    """The same runs as for the right source end with a sentence that names what differs."""
    with pytest.raises(AssertionError) as found:
        play(server.url, fault.planted(SOURCE), Length())
    assert str(found.value)


def test_by_its_clock_a_moment_ends_what_has_outlived_its_ttl_as_a_long_wait_does(client: Any) -> None:
    client.mset({"moment": "v", "wait": "v"})
    clock = Clock(client)
    clock.ends = {"moment": clock.now_ms, "wait": clock.now_ms + 1000}
    begun = clock.now_ms
    while clock.now_ms == begun:
        assert client.exists("moment")
        clock.step()
    assert not client.exists("moment")
    clock.wait(999)
    assert client.exists("wait")
    clock.wait(1)
    assert not client.exists("wait")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_has_its_place_in_the_library(fault: Fault) -> None:
    assert fault.planted(SOURCE) != SOURCE


def test_a_fault_whose_place_is_gone_is_not_planted() -> None:
    with pytest.raises(AssertionError, match="belongs in 0 places"):
        Fault("nowhere", "no such line in the library", "").planted(SOURCE)


def test_the_census_names_what_was_met_too_rarely() -> None:
    census = Census()
    census.commands["admit"] = 5_000
    missing = census.missing()
    assert "claim: 0 of 5000" in missing
    assert "refused ramp: 0" in missing
    assert not any(line.startswith("5000 commands") for line in missing)
