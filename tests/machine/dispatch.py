"""What claims, intents and renewals should do (contract §3, §4): who gets which job, and who no longer holds one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sluicegate.contract import Dispatch
from sluicegate.replies import Claimed, Renewed
from tests.machine.agreement import agree
from tests.machine.world import Entry, Job, Seat, World, event, finish, handed, start

_SEAT_MS = 60_000


def claim(world: World, worker: str, request: str, slots: int, answer: Claimed) -> None:
    """Check a claim's answer; among heads of the same rank the server may take any."""
    agree(answer.drain_state, world.gate.effective, "the gate that a claim answers")
    agree(answer.epoch, world.gate.epoch, "the epoch that a claim answers")
    seat = world.seats.get(worker)
    if seat is not None and seat.request == request:
        again = [world.jobs[job_id] for job_id, fence in seat.claimed if _held(world, job_id, fence)]
        agree(answer.jobs, tuple(handed(world, job) for job in again), "the jobs of a repeated claim")
        agree(answer.expired, (), "what a repeated claim expired")
        return
    started = _take(world, worker, slots, answer)
    claimed = tuple((job.job_id, job.fence) for job in started)
    world.seats[worker] = Seat(request, claimed, world.now + _SEAT_MS)


def _take(world: World, worker: str, slots: int, answer: Claimed) -> list[Job]:
    jobs, expired = list(answer.jobs), list(answer.expired)
    started: list[Job] = []
    while len(started) < slots and (heads := _heads(world)):
        # An expiry takes nobody's place, so among heads of the same rank it may come first.
        if expired and (job := heads.get(expired[0].job_id)) and world.doomed(job):
            agree(expired.pop(0), event(world, job), "a job that a claim expired")
            world.counters["canaries_failed"] += bool(job.canary)
            finish(world, job, "expired", "claim")
        elif jobs and (job := heads.get(jobs[0].job_id)) and not world.doomed(job):
            started.append(start(world, job, worker))
            agree(jobs.pop(0), handed(world, started[-1]), "a claimed job")
        else:
            raise AssertionError(f"a claim had to go on with one of {sorted(heads)}, and gave {answer}")
    agree((jobs, expired), ([], []), "what a claim gave beyond what it could")
    return started


def _heads(world: World) -> dict[str, Job]:
    """Give the jobs that may be claimed next: one, or several of the same rank."""
    gate = world.gate
    if gate.effective == "recovering" and not gate.green:
        waiting = [job for job in world.jobs.values() if job.canary and job.state == "ready"]
        return _by_id(sorted(waiting, key=lambda job: (job.eligible, job.job_id))[:1])
    running = list(world.ordinary("running"))
    if not gate.pulls_backlog or len(running) >= world.contract["max_running"]:
        return {}
    rank = _by_deadline if world.contract["dispatch"] == Dispatch.EDF else _by_age
    heads: dict[tuple[str, str], Job] = {}
    for job in sorted(world.ordinary("ready"), key=lambda job: (rank(job), job.job_id)):
        heads.setdefault((job.job_class, job.cost), job)
    free = [job for job in heads.values() if not _full(world, job, running)]
    first = min(map(rank, free), default=0)
    return _by_id(job for job in free if rank(job) == first)


def _by_age(job: Job) -> int:
    return job.eligible


def _by_deadline(job: Job) -> int:
    return job.deadline


def _by_id(jobs: Iterable[Job]) -> dict[str, Job]:
    return {job.job_id: job for job in jobs}


def _full(world: World, job: Job, running: list[Job]) -> bool:
    of_class, of_cost = world.declared(job.job_class), world.contract["cost_classes"].get(job.cost)
    same_class = sum(other.job_class == job.job_class for other in running)
    same_cost = sum(other.cost == job.cost for other in running)
    return (of_class is not None and 0 < of_class["max_running"] <= same_class) or (
        of_cost is not None and 0 < of_cost["max_running"] <= same_cost
    )


def _held(world: World, job_id: str, fence: int) -> bool:
    job = world.jobs.get(job_id)
    return job is not None and job.state == "running" and job.fence == fence


def intent(world: World, job_id: str, fence: int, answer: str) -> None:
    """Check the answer to an intent; `go` leaves it in the ledger."""
    if not _held(world, job_id, fence):
        agree(answer, "stale", "the answer to an intent under an old fence")
        return
    job, gate = world.jobs[job_id], world.gate
    goes = gate.pulls_backlog or (bool(job.canary) and gate.effective == "recovering")
    if job.canary and (gate.green or job.window != gate.window):
        goes = False
    agree(answer, "go" if goes else "stop", f"the answer to an intent in {gate.effective}")
    if goes:
        world.ledger[job.key] = Entry(intent=world.now, fence=fence)


def renew(world: World, worker: str, leases: Mapping[str, int], answer: Renewed) -> None:
    """Check a renewal; whatever is not the worker's any more is named."""
    lost = [job_id for job_id, fence in leases.items() if not _held(world, job_id, fence)]
    agree(answer.lost, tuple(lost), "the leases that a renewal named lost")
    agree(answer.drain_state, world.gate.effective, "the gate that a renewal answers")
    for job_id in set(leases) - set(lost):
        world.jobs[job_id] = replace(world.jobs[job_id], lease_end=world.now + world.contract["lease_ms"])
    if worker in world.seats:
        world.seats[worker] = replace(world.seats[worker], ends_at=world.now + _SEAT_MS)
