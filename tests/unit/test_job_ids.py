"""Ids of jobs that were given none: their shape, their order, and that none comes twice."""

from __future__ import annotations

import copy
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from sluicegate.job_ids import JobIds

INSTANTS = (0, 1, 1_700_000_000_000, 1_700_000_000_001, 2**48 - 1)


def test_an_id_has_its_millisecond_first() -> None:
    ids = [JobIds().new(now_ms) for now_ms in INSTANTS]
    assert ids == sorted(ids)
    assert {len(job_id) for job_id in ids} == {26}
    assert JobIds(lambda bits: 0).new(1) == "00000000010000000000000000"
    assert JobIds(lambda bits: 2**bits - 1).new(2**48 - 1) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


def test_ids_of_one_millisecond_sort_as_they_were_asked_for_and_so_do_those_of_a_clock_that_goes_back() -> None:
    made = JobIds()
    ids = [made.new(now_ms) for now_ms in (7, 7, 7, 6, 8, 5, *[8] * 1000)]
    assert ids == sorted(set(ids))
    # However high the first of them was drawn.
    highest = JobIds(lambda bits: 2**bits - 1)
    ids = [highest.new(now_ms) for now_ms in (7, 7, 8, 8, 2**48 - 1, 2**48 - 1)]
    assert (ids, {len(job_id) for job_id in ids}) == (sorted(set(ids)), {26})


def test_two_that_go_on_from_the_same_id_make_no_id_twice() -> None:
    made = JobIds()
    made.new(9)
    forked = copy.copy(made)
    ids = [one.new(8) for one in (made, forked) for _ in range(1000)]
    assert len(set(ids)) == 2000


def test_ids_of_threads_that_ask_at_once_sort_in_each_as_it_asked_for_them() -> None:
    def yielding(bits: int) -> int:
        time.sleep(0)  # another thread's turn, as the kernel's random source gives it
        return secrets.randbits(bits)

    made = JobIds(yielding)
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(lambda _: [made.new(8) for _ in range(2000)], range(4)))
    assert all(ids == sorted(ids) for ids in runs)
    assert len({one for ids in runs for one in ids}) == 8000


FORKED_UNDER_THE_LOCK = """
import os
from sluicegate.job_ids import JobIds
made = JobIds()
with made._lock:
    child = os.fork()
    if child == 0:
        made.new(1)
        os._exit(0)
print(os.waitpid(child, 0)[1])
"""


def test_a_child_process_that_is_forked_while_a_thread_makes_an_id_makes_its_own() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKED_UNDER_THE_LOCK], capture_output=True, text=True, timeout=20, check=True
    )
    assert ran.stdout == "0\n"
