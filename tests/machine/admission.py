"""What a submission should be answered (contract §5), rule by rule in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sluicegate.admission import Decision
from tests.machine.world import Decided, Job, World, enter

Submitted = Mapping[str, Any]


def decide(world: World, job: Submitted) -> Decision:
    """Give the decision, and store it with the job it makes."""
    known = world.decisions.get(job["key"])
    if known is not None:
        if known.fingerprint != job["fp"]:
            return Decision(False, known.job_id, "conflict", None, True)
        if known.accepted or known.retry_at == 0 or known.retry_at > world.now:
            return _replay(world, known)
    job_id = known.job_id if known is not None else job["id"]
    if job_id in world.jobs:
        return Decision(False, job_id, "conflict")
    declared = world.declared(job["class"])
    job_class = job["class"] if declared else "other"
    cost = job["cost_class"] or (declared["cost_class"] if declared else "-")
    deadline = job["deadline_ms"]
    if deadline == 0 and job["deadline_in_ms"] > 0:
        deadline = world.now + job["deadline_in_ms"]
    if deadline == 0 and declared:
        deadline = world.now + declared["deadline_ms"]
    refusal = _refusal(world, job, job_class, cost, deadline)
    if refusal is not None:
        return _refuse(world, job, job_id, *refusal)
    return _accept(world, job, job_id, job_class, cost, deadline)


def _replay(world: World, known: Decided) -> Decision:
    world.counters["replayed"] += 1
    live = not known.accepted and known.retry_at > 0
    wait_s = (known.retry_at - world.now) / 1000 if live else None
    return Decision(known.accepted, known.job_id, known.reason, wait_s, True)


def _refusal(world: World, job: Submitted, job_class: str, cost: str, deadline: int) -> tuple[str, int] | None:
    """Give the first rule that refuses, with the wait in ms (0: never)."""
    timings = world.timings
    closed = _closed(world, job["key"])
    if closed:
        return closed, timings["closed_retry_ms"]
    undeclared = job_class == "other" and world.contract["strict_classes"]
    if undeclared or (cost != "-" and cost not in world.contract["cost_classes"]):
        return "unknown_class", 0
    pending = list(world.ordinary("ready", "delayed"))
    running = len(list(world.ordinary("running")))
    in_flight_max = world.contract["max_pending"] + world.contract["max_running"]
    if len(pending) >= world.contract["max_pending"] or len(pending) + running >= in_flight_max:
        return "overloaded", timings["overloaded_retry_ms"]
    if _full(world.declared(job_class), sum(other.job_class == job_class for other in pending)):
        return f"{job_class}_limit", timings["class_limit_retry_ms"]
    if _full(world.contract["cost_classes"].get(cost), sum(other.cost == cost for other in pending)):
        return f"{cost}_limit", timings["class_limit_retry_ms"]
    left = deadline - world.now - timings["margin_ms"]
    wait = _predicted_wait_ms(world)
    if left <= 0 or (wait is not None and wait > left):
        return "deadline_unreachable", 0
    return None


def _closed(world: World, key: str) -> str | None:
    gate = world.gate
    if gate.effective != "admit":
        return "admission_closed"
    if abs(world.now - gate.seen_ms) > world.timings["controller_silent_ms"]:
        return "controller_silent"
    if gate.ramp is not None and int(hashlib.sha1(key.encode()).hexdigest()[:8], 16) % 100 >= gate.ramp:  # noqa: S324  # a share, no secret
        return "ramp"
    return None


def _full(limits: Mapping[str, Any] | None, counted: int) -> bool:
    return limits is not None and 0 < limits["max_pending"] <= counted


def _predicted_wait_ms(world: World) -> float | None:
    backlog = len(list(world.ordinary("ready")))
    if backlog == 0:
        return 0
    done = world.completions()
    if done < world.contract["prediction_min_completions"]:
        return None
    return float(backlog * world.timings["provider_window_ms"] / done)


def _refuse(world: World, job: Submitted, job_id: str, reason: str, wait_ms: int) -> Decision:
    ends_at = world.now + wait_ms + world.timings["refusal_retention_ms"]
    retry_at = world.now + wait_ms if wait_ms else 0
    world.decisions[job["key"]] = Decided(job_id, job["fp"], False, reason, retry_at, ends_at)
    world.counters[f"refused:{reason}"] += 1
    counts_under = job["class"] if world.declared(job["class"]) else "other"
    world.class_counters[counts_under, f"refused:{reason}"] += 1
    return Decision(False, job_id, reason, wait_ms / 1000 if wait_ms else None)


def _accept(world: World, job: Submitted, job_id: str, job_class: str, cost: str, deadline: int) -> Decision:
    enter(
        world,
        Job(
            job_id=job_id,
            job_class=job_class,
            declared=job["class"],
            cost=cost,
            deadline=deadline,
            key=job["key"],
            eligible=world.now,
            admitted_at=world.now,
            payload=job["payload"],
        ),
    )
    world.decisions[job["key"]] = Decided(job_id, job["fp"], True)
    world.counters["admitted"] += 1
    world.class_counters[job_class, "admitted"] += 1
    return Decision(True, job_id)
