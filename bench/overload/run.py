"""Put one load on one queue under one policy: `python -m bench.overload.run URL PLAN`, the plan a JSON object.

Prints one JSON object: the score. The caller, the controller and the figures are here; the slots are two processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bench.environments import ROOT
from bench.overload.calling import Asked, Callers
from bench.overload.controlling import control
from bench.overload.plan import SLOTS, Policy, Shape, asks, contract_of
from bench.overload.scoring import Outcome, Score, score
from bench.processes import die_with_parent, end_on_sigterm
from sluicegate.store import Store

_PROCESSES = 2
_RECORDS_A_CALL = 100


def run(url: str, policy: Policy, shape: Shape, seed: int, backlog_limit: float) -> Score:
    """Open the queue, load it, let the slots stop, and judge by the records that the queue kept."""
    queue = f"{policy.value}-{shape.name}"
    contract = contract_of(policy, backlog_limit)
    store = Store.connect(url, queue, timeout_s=10)
    opened = store.init_queue(contract.for_redis(), contract.digest(), "bench", "a measurement")
    if opened.answer != "moved":
        raise SystemExit(f"the queue {queue} cannot be opened: {opened.why}")
    with _slots(url, queue):
        time.sleep(1.5)  # until the workers have read the contract
        began_s = time.time()
        asked = asyncio.run(_load(store, policy, shape, seed, contract.timings.tick_s))
    outcomes = [_outcome(one, ended, began_s) for one, ended in _with_records(store, asked)]
    store.close()
    return score(policy.value, shape, outcomes, sum(one.tries for one in asked))


@contextmanager
def _slots(url: str, queue: str) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.overload.slots", url, queue, str(SLOTS // _PROCESSES)]
    processes = [
        subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
        )
        for _ in range(_PROCESSES)
    ]
    try:
        yield
        for process in processes:
            if process.poll() is not None:
                raise SystemExit(f"a worker ended with {process.returncode}")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


async def _load(store: Store, policy: Policy, shape: Shape, seed: int, tick_s: float) -> Sequence[Asked]:
    callers = Callers(store)
    controller = asyncio.ensure_future(control(store, tick_s)) if policy is Policy.THRESHOLDS else None
    await callers.call(asks(shape, seed))
    if controller is not None:
        if controller.done():
            controller.result()
        controller.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await controller
    return callers.asked


def _with_records(store: Store, asked: Sequence[Asked]) -> Iterator[tuple[Asked, Mapping[str, Any] | None]]:
    """Pair every ask with its record as the queue has it; a refused one has none that counts."""
    accepted = [one for one in asked if one.accepted]
    yield from ((one, None) for one in asked if not one.accepted)
    for start in range(0, len(accepted), _RECORDS_A_CALL):
        batch = accepted[start : start + _RECORDS_A_CALL]
        found = {row["id"]: row["job"] for row in store.records([one.job_id for one in batch])["jobs"]}
        yield from ((one, found[one.job_id]) for one in batch)


def _outcome(asked: Asked, record: Mapping[str, Any] | None, began_s: float) -> Outcome:
    ended_ms = None if record is None else record.get("ended_at")
    return Outcome(
        job_class=asked.ask.job_class,
        service_s=asked.ask.service_s,
        asked_s=asked.asked_ms / 1000 - began_s,
        deadline_s=asked.deadline_ms / 1000 - began_s,
        accepted=asked.accepted,
        succeeded=record is not None and record["state"] == "succeeded",
        ended_s=None if ended_ms is None else int(ended_ms) / 1000 - began_s,
        reason=asked.reason,
    )


def main(url: str, plan: Mapping[str, Any]) -> None:
    shape = plan["shape"]
    burst = tuple(shape["burst"]) if shape["burst"] else None
    result = run(url, Policy(plan["policy"]), Shape(**{**shape, "burst": burst}), plan["seed"], plan["backlog_limit"])
    print(json.dumps(result.as_json()))


if __name__ == "__main__":
    end_on_sigterm()
    main(sys.argv[1], json.loads(sys.argv[2]))
