"""The invariants of DESIGN, each looked for in the raw keys alone: what stands now, and how it came from what stood.

13 (restore) is held after each restore; 14 (any client may stop between any two commands) holds where the others hold
after each command; 15 (repeats) is what the model expects of each repeat.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.job import MOVES, JobState
from tests.machine.dump import Dump, Fields
from tests.machine.gate import Gate, read_gate
from tests.machine.world import FINAL

_NO_CONTAINERS = ("queue:settings", "queue:wake", "queue:refusals", "queue:pending")
_MARGIN = "margin_ms"


@dataclass(frozen=True)
class Change:
    """Hold the raw keys before and after one command, or after two that raced; `gates` were in force meanwhile."""

    before: Dump
    after: Dump
    gates: tuple[Gate, ...]
    now_ms: int
    contract: Mapping[str, Any]

    def started(self) -> dict[str, Fields]:
        """Give the jobs that a claim started: their fence is new."""
        earlier = self.before.jobs
        return {
            job_id: job
            for job_id, job in self.after.jobs.items()
            if job["fence"] != earlier.get(job_id, {}).get("fence", "0")
        }

    def moved(self) -> dict[str, tuple[str, str]]:
        """Give the states that jobs went from and to; a new one comes from nowhere."""
        earlier = self.before.jobs
        states = {
            job_id: (earlier.get(job_id, {}).get("state", ""), job["state"]) for job_id, job in self.after.jobs.items()
        }
        return {job_id: (was, now) for job_id, (was, now) in states.items() if was != now}


def containers_hold_exactly_their_state(change: Change) -> None:
    """1: each job is in one state and in exactly that state's containers."""
    expected: dict[str, dict[str, float]] = defaultdict(dict)
    for job_id, job in change.after.jobs.items():
        for name, score in _places(job):
            expected[name][job_id] = float(score)
    found = {
        name: members
        for name, members in change.after.zsets.items()
        if name.startswith(("queue:", "running:")) and name not in _NO_CONTAINERS
    }
    for name in ("queue:unknown", "queue:blocked"):
        for key in [key for key in found if key.startswith(name)]:
            found[key] = dict.fromkeys(found[key], 0.0)
    assert found == expected, f"containers differ: {_difference(found, expected)}"


def _places(job: Fields) -> list[tuple[str, str]]:
    state, job_class, cost, canary = job["state"], job["class"], job["cost"], job["canary"]
    if canary:
        lease = [(name, job["lease_end"]) for name in ("queue:leases", "running:canary")] if state == "running" else []
        return [("queue:canary", job["eligible"])] if state == "ready" else lease
    places = {
        "ready": [
            (f"queue:fifo:{job_class}:{cost}", "eligible"), (f"queue:ready:{job_class}:{cost}", "deadline"),
        ],
        "delayed": [("queue:delayed", "ready_at"), (f"queue:delayed:{job_class}", "deadline")],
        "running": [("queue:leases", "lease_end"), (f"running:{job_class}", "deadline")],
    }.get(state, [])  # fmt: skip
    if state == "delayed" and cost != "-":
        places = [*places, (f"queue:delayed:cost:{cost}", "ready_at")]
    if state == "running" and cost != "-":
        places = [*places, (f"running:cost:{cost}", "deadline")]
    aside = [(f"queue:{state}", "0"), (f"queue:{state}:{job_class}", "0")] if state in ("unknown", "blocked") else []
    return [*((name, job[field]) for name, field in places), *aside]


def _difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in {*found, *expected} if found.get(name) != expected.get(name)]
    return {name: (found.get(name), expected.get(name)) for name in names}


def indexes_agree(change: Change) -> None:
    """2: pending list = all fifo indexes = all ready indexes; each unfinished job is in one index by deadline."""
    zsets = change.after.zsets
    ready = sorted(_union(zsets, "queue:fifo:"))
    assert sorted(change.after.lists.get("queue:pending", [])) == ready
    assert sorted(_union(zsets, "queue:ready:")) == ready, "queue:ready:* is not queue:fifo:*"
    for pair in (name.removeprefix("queue:fifo:") for name in zsets if name.startswith("queue:fifo:")):
        assert pair in change.after.pairs, f"nobody knows the pair {pair}"
    assert set(change.after.refusals) <= set(zsets.get("queue:refusals", {})), "a live refusal is in no queue:refusals"


def _union(zsets: Mapping[str, Mapping[str, float]], prefix: str) -> list[str]:
    return [member for name, members in zsets.items() if name.startswith(prefix) for member in members]


def running_sums_agree(change: Change) -> None:
    """3: the sum of running:{class} is the number of leases; a cost class has its own."""
    zsets = change.after.zsets
    leases, canaries = len(zsets.get("queue:leases", {})), len(zsets.get("running:canary", {}))
    of_class = len(_union(zsets, "running:")) - len(_union(zsets, "running:cost:")) - canaries
    assert of_class + canaries == leases


def fences_only_grow(change: Change) -> None:
    """4: a fence only grows; so does the version of a record that changes."""
    for job_id, before in change.before.jobs.items():
        after = change.after.jobs.get(job_id)
        if after is None or after["admitted_at"] != before["admitted_at"]:
            continue
        assert int(after["fence"]) >= int(before["fence"]), f"the fence of {job_id} fell"
        if (after["state"], after.get("lease_end")) != (before["state"], before.get("lease_end")):
            assert int(after["rev"]) > int(before["rev"]), f"the record of {job_id} changed under the same rev"
    for job_id, job in change.started().items():
        assert int(job["fence"]) > int(change.before.jobs.get(job_id, {}).get("fence", "0"))


def moves_are_allowed(change: Change) -> None:
    """5: final states are final, and nothing goes where it may not."""
    for job_id, (was, now) in change.moved().items():
        steps = {JobState.READY} if was == "" else MOVES[JobState(was)]
        # Where two commands raced, a job may have gone two steps.
        reached = {*steps, *(further for step in steps for further in MOVES[step])} if len(change.gates) > 1 else steps
        assert JobState(now) in reached, f"job {job_id} went from {was or 'nowhere'} to {now}"


def unknown_is_left_by_a_record(change: Change) -> None:
    """6: unknown is left only through a reconcile record, blocked only through a person's."""
    records = change.after.news("reconcile:log")
    for job_id, (was, now) in change.moved().items():
        if was not in ("unknown", "blocked"):
            continue
        mine = [record for record in records if record.get("job") == job_id and record["kind"] != "stale_write"]
        assert mine, f"job {job_id} left {was} for {now} without a record"
        if was == "blocked":
            assert any(record.get("source") == "person" for record in mine), f"no person let {job_id} out of blocked"


def one_key_one_job(change: Change) -> None:
    """7: one key, one record while it is retained: the job, or a refusal, which makes none."""
    for key, job in change.before.jobs.items():
        after = change.after.hashes.get(f"job:{key}")
        assert after is None or after["state"] != "refused", f"the job {key} became a refusal"
        assert after is None or after.get("fp") == job.get("fp"), f"the key {key} has another payload"
    payloads = {name.removeprefix("payload:") for name in change.after.strings if name.startswith("payload:")}
    assert payloads == set(change.after.jobs), f"payloads and jobs differ: {payloads ^ set(change.after.jobs)}"


def retries_stay_in_budget(change: Change) -> None:
    """8: retries_used ≤ budget, then blocked."""
    budget = change.contract["retry_budget"]
    for job_id, job in change.after.jobs.items():
        assert int(job["retries"]) <= budget
        assert int(job["retries"]) < budget or job["state"] in ("blocked", *FINAL), f"job {job_id} goes on"


def limits_hold(change: Change) -> None:
    """9: pending + running ≤ max_in_flight at every acceptance, running limits at every claim, canaries aside."""
    jobs = [job for job in change.after.jobs.values() if not job["canary"]]
    pending = [job for job in jobs if job["state"] in ("ready", "delayed")]
    running = [job for job in jobs if job["state"] == "running"]
    if any(was == "" and not change.after.jobs[job_id]["canary"] for job_id, (was, _) in change.moved().items()):
        assert len(pending) <= change.contract["max_pending"]
        assert len(pending) + len(running) <= change.contract["max_pending"] + change.contract["max_running"]
    started = [job for job in change.started().values() if not job["canary"]]
    assert not started or len(running) <= change.contract["max_running"]
    for kind, limits in (("class", change.contract["classes"]), ("cost", change.contract["cost_classes"])):
        for name in {job[kind] for job in started if limits.get(job[kind], {}).get("max_running", 0)}:
            assert sum(job[kind] == name for job in running) <= limits[name]["max_running"], f"{kind} {name} is over"


def the_gate_is_obeyed(change: Change) -> None:
    """10: no claim in drain; in recovering only this run's canaries until green; no admission but in admit."""
    for job_id, job in change.started().items():
        assert any(_may_start(gate, job) for gate in change.gates), f"job {job_id} started in {change.gates}"
    new = [job_id for job_id, (was, _) in change.moved().items() if was == ""]
    ordinary = [job_id for job_id in new if not change.after.jobs[job_id]["canary"]]
    assert not ordinary or any(gate.effective == "admit" for gate in change.gates), (
        f"{ordinary} came in, {change.gates}"
    )
    gate = read_gate(change.after)
    if gate.readable and not gate.takes_canaries:
        assert not change.after.zsets.get("queue:canary"), f"canaries wait in {gate.stored}"


def _may_start(gate: Gate, job: Fields) -> bool:
    if job["canary"]:
        return gate.effective == "recovering" and not gate.green and job["canary"] == gate.run
    return gate.pulls_backlog


def nothing_starts_too_late(change: Change) -> None:
    """11: no start with slack under the margin."""
    margin = change.contract["timings"][_MARGIN]
    for job_id, job in change.started().items():
        assert int(job["deadline"]) - change.now_ms >= margin, f"job {job_id} started too late"


def gate_moves_are_logged(change: Change) -> None:
    """12: every gate move has its log entry, one leads to the next, and what is in force is never looser."""
    before, after = read_gate(change.before), read_gate(change.after)
    assert after.epoch >= before.epoch or not after.readable
    entries = change.after.news("control:log")
    if (after.stored, after.epoch) == (before.stored, before.epoch) or not after.readable:
        return
    assert entries, f"the gate went from {before} to {after} and nothing is logged"
    last = entries[-1]
    assert (last["to"], last["epoch"]) == (after.stored, str(after.epoch)), f"{last} is not the last move"
    if before.readable and change.before.hashes:
        assert entries[0]["from"] == before.stored, f"{entries[0]} does not start from {before.stored}"
    for earlier, later in itertools.pairwise(entries):
        assert earlier["to"] == later["from"], f"between {earlier} and {later} a move is missing"


def a_restore_keeps_all_that_was_open(change: Change) -> None:
    """13: the same ids under the same keys and payloads, running → unknown, fences grow, closed and pinned."""
    was = {job_id: job for job_id, job in change.before.jobs.items() if job["state"] not in FINAL and not job["canary"]}
    assert set(change.after.jobs) == set(was), f"ids differ: {set(change.after.jobs) ^ set(was)}"
    for job_id, job in was.items():
        now = change.after.jobs[job_id]
        assert now["state"] == ("unknown" if job["state"] == "running" else job["state"]), f"job {job_id}"
        assert (now["fp"], now["deadline"]) == (job["fp"], job["deadline"]), f"job {job_id} is another"
        assert int(now["fence"]) > int(job["fence"]), f"the fence of {job_id} did not grow"
        payloads = [dump.strings[f"payload:{job_id}"] for dump in (change.before, change.after)]
        assert payloads[0] == payloads[1], f"the payload of {job_id} is another"
    gate = read_gate(change.after)
    assert (gate.readable, gate.effective, gate.pin) == (True, "drain", "restored"), f"restored as {gate}"
    assert change.after.strings["admission"] == "closed"


# What holds of any instant, whatever was before it.
AT_REST = (containers_hold_exactly_their_state, indexes_agree, running_sums_agree, one_key_one_job)

LAWS: tuple[Callable[[Change], None], ...] = (
    containers_hold_exactly_their_state,
    indexes_agree,
    running_sums_agree,
    fences_only_grow,
    moves_are_allowed,
    unknown_is_left_by_a_record,
    one_key_one_job,
    retries_stay_in_budget,
    limits_hold,
    the_gate_is_obeyed,
    nothing_starts_too_late,
    gate_moves_are_logged,
)


def hold(change: Change) -> None:
    for law in LAWS:
        law(change)


def hold_restored(change: Change) -> None:
    """Compare what was restored with what the snapshot was of."""
    for law in (*AT_REST, retries_stay_in_budget, a_restore_keeps_all_that_was_open):
        law(change)


def contract_of(dump: Dump) -> Mapping[str, Any]:
    contract: Mapping[str, Any] = json.loads(dump.hashes["queue:settings"]["contract"])
    return contract
