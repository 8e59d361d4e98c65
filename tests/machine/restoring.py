"""What a queue holds after a snapshot of it was restored onto an empty server (invariant 13)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.machine.world import FINAL, Decided, Job, World


def restored(world: World) -> World:
    """Give what is expected: all that was open under new fences, the live refusals, and no count of what was before."""
    kept = {job.job_id: _back(world, job) for job in world.jobs.values() if job.state not in FINAL and not job.canary}
    ready = sorted(
        (job for job in kept.values() if job.state == "ready"),
        key=lambda job: (f"{job.job_class}:{job.cost}", job.eligible, job.job_id),
    )
    return replace(
        world.copy(),
        jobs=kept,
        pending=[job.job_id for job in ready],
        decisions={key: decided for key, decided in world.decisions.items() if _stays(world, key, decided, kept)},
        ledger={key: entry for key, entry in world.ledger.items() if key in kept},
        seats={},
        counters=Counter(restored=len(kept)),
        class_counters=Counter(),
        failures=Counter(),
        calls=Counter(),
        done=Counter(),
        # What repeats are told by is in the records, and comes back with them.
        settled={(job, request): at for (job, request), at in world.settled.items() if job in kept},
        refused_late={(job, request) for job, request in world.refused_late if job in kept},
    )


def _back(world: World, job: Job) -> Job:
    """Give a job as it comes back: whether a running one was done, nobody knows."""
    fence = max(job.fence + 1, world.now_us)
    back = replace(job, fence=fence, restored_fence=fence, worker="")
    return replace(back, state="unknown", cause="restored") if job.state == "running" else back


def _stays(world: World, key: str, decided: Decided, kept: dict[str, Job]) -> bool:
    return key in kept if decided.accepted else decided.ends_at > world.now
