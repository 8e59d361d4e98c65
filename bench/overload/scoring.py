"""Turn what became of every job into the figures that policies are compared by. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.overload.plan import FAIR_SHARE, MIX, SLOTS, Shape


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold one job at the end: seconds from the start of the run; `ended_s` is None for one that never ended."""

    job_class: str
    service_s: float
    asked_s: float
    deadline_s: float
    accepted: bool
    succeeded: bool
    ended_s: float | None
    reason: str = ""

    @property
    def in_time(self) -> bool:
        return self.succeeded and self.ended_s is not None and self.ended_s <= self.deadline_s


@dataclass(frozen=True, slots=True)
class Score:
    """Hold the figures of one run.

    in_time: of a steady load, the work that was done in time in the counted seconds ÷ what six slots can do in them;
    of a burst, the share of the jobs asked for in the counted seconds that were done in time. missed: the share of the
    accepted jobs that were not. fair: work done in time by class ÷ its fair share; of a burst, the share of its jobs.
    """

    policy: str
    shape: str
    in_time: float
    missed: float
    fair: Mapping[str, float]
    asked: int
    accepted: int
    tries: int
    longest_wait_s: float
    refused: Mapping[str, int]

    @property
    def least_fair(self) -> float:
        return min(self.fair.values())

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Score:
        return cls(**body)


def score(policy: str, shape: Shape, outcomes: Sequence[Outcome], tries: int) -> Score:
    """Judge one run."""
    since_s, until_s = shape.warm_s, shape.warm_s + shape.count_s
    counted = [one for one in outcomes if since_s <= one.asked_s < until_s]
    accepted = [one for one in counted if one.accepted]
    in_time, fair = _of_jobs(counted) if shape.burst else _of_capacity(shape, outcomes, since_s, until_s)
    settled = (
        accepted if shape.burst else [one for one in outcomes if one.accepted and since_s <= _settled_s(one) < until_s]
    )
    return Score(
        policy=policy,
        shape=shape.name,
        in_time=in_time,
        missed=sum(not one.in_time for one in settled) / max(1, len(settled)),
        fair=fair,
        asked=len(counted),
        accepted=len(accepted),
        tries=tries,
        longest_wait_s=max((one.ended_s - one.asked_s for one in counted if one.in_time and one.ended_s), default=0.0),
        refused=dict(Counter(one.reason or "unanswered" for one in counted if not one.accepted)),
    )


def _of_capacity(
    shape: Shape, outcomes: Iterable[Outcome], since_s: float, until_s: float
) -> tuple[float, Mapping[str, float]]:
    """Judge by what ended in the counted seconds: what was asked for late in them has not ended yet."""
    done = dict.fromkeys(MIX, 0.0)
    for one in outcomes:
        if one.in_time and since_s <= _settled_s(one) < until_s:
            done[one.job_class] += one.service_s
    capacity = SLOTS * (until_s - since_s)
    served = min(1.0, shape.load)
    return sum(done.values()) / capacity, {name: done[name] / (served * FAIR_SHARE[name] * capacity) for name in MIX}


def _of_jobs(counted: Sequence[Outcome]) -> tuple[float, Mapping[str, float]]:
    """Judge by what was asked for: with a mean load that can be done, all of it could have been."""

    def share(jobs: Sequence[Outcome]) -> float:
        return sum(one.in_time for one in jobs) / max(1, len(jobs))

    return share(counted), {name: share([one for one in counted if one.job_class == name]) for name in MIX}


def _settled_s(one: Outcome) -> float:
    """Give when it was known what became of the job: at its end, at its deadline at the latest."""
    return min(math.inf if one.ended_s is None else one.ended_s, one.deadline_s)
