"""What ends a job or sends it on: settlements, sweeps, promotions and reconcile records (contract §3, §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sluicegate.replies import JobEvent, Settled, Swept
from tests.machine.agreement import agree
from tests.machine.world import Entry, Job, World, again, enter, event, finish, lose, set_aside

Arguments = Mapping[str, Any]


def settle(world: World, sent: Arguments, answer: Settled) -> None:
    """Check a settlement; each request id counts once, however often and however late it comes."""
    job_id, request = sent["id"], sent["request"]
    job = world.jobs.get(job_id)
    if (job_id, request) in world.settled:
        agree((answer.answer, answer.state), ("repeat", world.settled[job_id, request]), "a repeated settlement")
        return
    if job is None or str(job.fence) != sent["fence"] or job.state not in ("running", "unknown"):
        state = job.state if job is not None else "gone"
        agree((answer.answer, answer.state), ("stale", state), "a settlement under an old fence")
        _count_late(world, job, sent)
        return
    told = event(world, job)
    _count_call(world, job, sent.get("call"))
    state = _settled(world, job, sent)
    world.settled[job_id, request] = state
    if state == "succeeded" and job.late_success:
        confirm_duplicate(world, job.key)
    if state == "succeeded" and not job.canary:
        world.done[world.bucket()] += 1
    if sent["outcome"] == "succeeded":
        entry = world.ledger.get(job.key, Entry(ends_at=world.jobs[job_id].ends_at))
        world.ledger[job.key] = replace(entry, confirmed=world.now)
    agree(answer, Settled("ok", state, told), f"a settlement of {job}")


def _settled(world: World, job: Job, sent: Arguments) -> str:
    if job.canary:
        return _settled_canary(world, job, sent)
    if job.state == "unknown":
        if sent["outcome"] not in ("succeeded", "failed"):
            return "unknown"
        world.records.append(("late_worker", job.job_id, sent["outcome"]))
        _count_left(world)
        return finish(world, job, sent["outcome"], "late_worker")
    return _OUTCOMES[sent["outcome"]](world, job, sent)


def _count_left(world: World) -> None:
    """Count a job that leaves unknown, and its record."""
    world.counters["unknown_left"] += 1
    world.counters["unknown_reconciled"] += 1


def _settled_canary(world: World, job: Job, sent: Arguments) -> str:
    declared = world.declared(job.job_class)
    latency_ms = sent.get("call", {}).get("latency_ms")
    assert declared is not None
    quick = latency_ms is not None and latency_ms <= declared["canary_max_latency_ms"]
    if sent["outcome"] == "succeeded" and quick:
        world.counters["canaries_ok"] += 1
        return finish(world, job, "succeeded", "")
    world.counters["canaries_failed"] += 1
    return finish(world, job, "failed", "slow" if sent["outcome"] == "succeeded" else sent["outcome"])


def _retry(world: World, job: Job, sent: Arguments) -> str:
    world.counters["retried"] += 1
    tried = replace(job, retries=job.retries + 1)
    if tried.retries >= world.contract["retry_budget"]:
        return set_aside(world, tried, "blocked", cause="retry_budget", worker="")
    return again(world, tried, sent["delay_ms"], called=_may_have_happened(sent))


def _requeue(world: World, job: Job, sent: Arguments) -> str:
    world.counters["requeued"] += 1
    return again(world, job, 0, head=True, called=_may_have_happened(sent))


def _may_have_happened(sent: Arguments) -> bool:
    call = sent.get("call")
    return call is not None and call["kind"] in ("timeout", "dropped", "cancelled")


_OUTCOMES: Mapping[str, Callable[[World, Job, Arguments], str]] = {
    "succeeded": lambda world, job, sent: finish(world, job, "succeeded", ""),
    "failed": lambda world, job, sent: finish(world, job, "failed", ""),
    "expired": lambda world, job, sent: finish(world, job, "expired", "worker"),
    "unknown": lambda world, job, sent: set_aside(world, job, "unknown", cause="ambiguous", worker=""),
    "not_executed": lambda world, job, sent: again(world, job, sent["delay_ms"]),
    "retry": _retry,
    "requeued": _requeue,
}


def _count_call(world: World, job: Job, call: Arguments | None) -> None:
    if call is None:
        return
    world.counters[f"calls:{call['kind']}"] += 1
    if call["kind"] == "cancelled":
        return
    window, bucket = job.window, world.bucket()
    world.calls[window, bucket, "calls"] += 1
    if call["kind"] in ("5xx", "timeout"):
        world.calls[window, bucket, call["kind"]] += 1


def _count_late(world: World, job: Job | None, sent: Arguments) -> None:
    """Count a late write once; where the job is gone there is nothing left to tell a repeat by."""
    if job is not None:
        if (job.job_id, sent["request"]) in world.refused_late:
            return
        world.refused_late.add((job.job_id, sent["request"]))
    world.counters["stale_writes"] += 1
    world.records.append(("stale_write", sent["id"], sent["outcome"]))
    declared = world.declared(job.job_class) if job is not None else None
    unsafe = declared is not None and declared["effects"] == "unsafe"
    # A restore gives a new fence too, and starts nothing.
    ran_again = job is not None and job.fence > int(sent["fence"]) and job.restored_fence != job.fence
    if job is None or not unsafe or sent["outcome"] != "succeeded":
        return
    if ran_again:
        confirm_duplicate(world, job.key)
    else:
        world.jobs[job.job_id] = replace(job, late_success=True)


def confirm_duplicate(world: World, key: str) -> None:
    world.duplicates += 1
    world.counters["duplicates_confirmed"] += 1
    world.records.append(("duplicate", key, ""))


def sweep(world: World, answer: Swept) -> None:
    """Check a sweep: the overdue expire, whatever lost its lease is unknown."""
    expire(world, world.now + world.timings["margin_ms"], "deadline", answer.expired)
    overdue = [job for job in world.jobs.values() if job.state == "running" and job.lease_end <= world.now]
    lost = [replace(event(world, job), state=lose(world, job)) for job in overdue]
    agree(_sorted(answer.lost), _sorted(lost), "the leases that a sweep found")
    agree(answer.more, False, "more to sweep")


def expire(world: World, before: int, cause: str, told: tuple[JobEvent, ...]) -> None:
    """Expire what waits with a deadline before an instant."""
    due = [job for job in world.ordinary("ready", "delayed") if job.deadline < before]
    agree(_sorted(told), _sorted([event(world, job) for job in due]), f"what expired for {cause}")
    for job in due:
        finish(world, job, "expired", cause)


def _sorted(events: list[JobEvent] | tuple[JobEvent, ...]) -> list[JobEvent]:
    return sorted(events, key=lambda told: told.job_id)


def promote(world: World, answer: int) -> None:
    due = sorted(
        (job for job in world.jobs.values() if job.state == "delayed" and job.ready_at <= world.now),
        key=lambda job: (job.ready_at, job.job_id),
    )
    agree(answer, len(due), "how many jobs were promoted")
    for job in due:
        enter(world, replace(job, state="ready"))


def reconcile(world: World, job_id: str, outcome: str, by: tuple[str, int | None], answer: tuple[str, str]) -> None:
    """Check a reconcile record: the only way out of unknown, and out of blocked by a person alone.

    `by` is the source and the fence it judged at, if it named one.
    """
    source, fence = by
    job = world.jobs.get(job_id)
    if job is None:
        agree(answer, ("gone", "gone"), "a reconcile record of no job")
        return
    if job.state != "unknown" and not (job.state == "blocked" and source == "person"):
        agree(answer, ("refused", job.state), f"a reconcile record by {source} of a job that is {job.state}")
    elif fence is not None and fence != job.fence:
        agree(answer, ("stale", job.state), f"a reconcile record by {source} of an earlier start")
    elif job.state == "blocked" and outcome == "block":
        agree(answer, ("refused", job.state), "a reconcile record that would change nothing")
    else:
        world.records.append(("reconcile", job_id, outcome))
        if job.state == "unknown":
            _count_left(world)
        agree(answer, ("moved", _reconciled(world, job, outcome, source)), f"a reconcile record by {source} of {job}")


def _reconciled(world: World, job: Job, outcome: str, source: str) -> str:
    if outcome == "block":
        return set_aside(world, job, "blocked", cause="because", worker="")
    if outcome != "retry":
        return finish(world, job, outcome, "reconciled")
    if job.state == "blocked":
        job = replace(job, losses=0, retries=0)
    entry = world.ledger.get(job.key)
    intended = entry is not None and entry.fence == job.fence
    # What a restored job did after its snapshot is in no ledger.
    called = source != "http" and (intended or job.restored_fence == job.fence)
    return again(world, job, 0, called=called)
