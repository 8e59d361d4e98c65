"""Say what is asked of the queue and when: the mix, the loads, the policies. Pure, and the same for the same seed."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sluicegate.settings import Contract, default_settings, faster

# Every duration is divided by it. A smaller one takes longer, and handing a job over weighs less beside its work.
FASTER = float(os.environ.get("BENCH_FASTER", "10"))
SLOTS = 6
_SIGMA = 0.6
# No call may be cut by its timeout because the simulation drew an outlier: a little less than the longest timeout.
_LONGEST_S = 9.5 / FASTER
_NEVER = 1_000_000


@dataclass(frozen=True, slots=True)
class JobClass:
    """Hold a class: its share of the jobs, its deadline and its mean service time in seconds."""

    share: float
    deadline_s: float
    mean_s: float


MIX = {
    "lint-fix": JobClass(0.70, 60 / FASTER, 0.3 / FASTER),
    "test-patch": JobClass(0.25, 180 / FASTER, 0.75 / FASTER),
    "refactor-plan": JobClass(0.05, 900 / FASTER, 2.05 / FASTER),
}
MEAN_S = sum(one.share * one.mean_s for one in MIX.values())
# Jobs a second that the slots can do, without the time between two jobs (contract §5).
CAPACITY_PER_S = SLOTS / MEAN_S
# The part of the offered work that is a class's: its fair share of the slots.
FAIR_SHARE = {name: one.share * one.mean_s / MEAN_S for name, one in MIX.items()}


# What the policy edf-backlog-limit has.
BACKLOG_LIMIT = 0.7


class Policy(StrEnum):
    """Name a way to admit and to dispatch."""

    FIFO = "fifo"  # no limit; what can't be done in time expires
    BOUNDED = "bounded-fifo"  # at most 10 s of work may wait
    THRESHOLDS = "thresholds"  # the contract's defaults; the controller closes admission by age and slack (contract §6)
    EDF = "edf"  # earliest deadline first, no limit
    EDF_LIMIT = "edf-backlog-limit"  # the same with a backlog limit for each class


@dataclass(frozen=True, slots=True)
class Shape:
    """Hold a load: times capacity, in seconds of the bench.

    `burst` is (times, seconds, every): so much for so long at the start of every period; the rest of the period has
    what makes the mean `load`. Counted are `count_s` seconds after `warm_s`; then the load goes on for `tail_s`.
    """

    name: str
    load: float
    warm_s: float
    count_s: float
    tail_s: float = 0.0
    burst: tuple[float, float, float] | None = None

    @property
    def lasts_s(self) -> float:
        return self.warm_s + self.count_s + self.tail_s

    def load_at(self, at_s: float) -> float:
        if self.burst is None:
            return self.load
        times, seconds, every = self.burst
        return times if at_s % every < seconds else (self.load * every - times * seconds) / (every - seconds)


@dataclass(frozen=True, slots=True)
class Ask:
    """Hold one job as its caller wants it: when (seconds from the start), and how long its call will take."""

    number: int
    at_s: float
    job_class: str
    service_s: float


def asks(shape: Shape, seed: int) -> Iterator[Ask]:
    """Give the jobs of a run in order: Poisson arrivals, the mix drawn anew for each, lognormal service times."""
    drawn = random.Random(f"{shape.name}/{seed}")
    names, shares = list(MIX), [one.share for one in MIX.values()]
    highest = shape.burst[0] if shape.burst else shape.load
    at_s, number = 0.0, 0
    while (at_s := at_s + drawn.expovariate(highest * CAPACITY_PER_S)) < shape.lasts_s:
        # Thinning: arrivals at the highest rate, kept with the probability that makes the rate of this moment.
        if drawn.random() * highest > shape.load_at(at_s):
            continue
        number += 1
        name = drawn.choices(names, shares)[0]
        mean_s = MIX[name].mean_s
        service_s = drawn.lognormvariate(math.log(mean_s) - _SIGMA**2 / 2, _SIGMA)
        yield Ask(number, at_s, name, min(service_s, _LONGEST_S))


def contract_of(policy: Policy, backlog_limit: float) -> Contract:
    """Give the contract of a policy: the drill's, as much faster, with what the policy says."""
    body = faster(default_settings(), FASTER).contract.model_dump(mode="json")
    body["max_running"] = SLOTS
    body["expected_service_s"] = MEAN_S
    body["timings"]["tick_s"] /= FASTER
    for name, share in FAIR_SHARE.items():
        body["classes"][name] |= {"share": share, "expected_service_s": MIX[name].mean_s}
    if policy is not Policy.THRESHOLDS:
        body["timings"]["controller_silent_s"] = 86_400
    body |= _LIMITS[policy]
    if policy is Policy.EDF_LIMIT:
        body["backlog_limit"] = backlog_limit
    # By age a drain would need a run and its executor to leave it; what closes admission here is the row before it.
    body["thresholds"]["drain_age_p95_seconds"] = _NEVER
    return Contract.model_validate(body)


_LIMITS: dict[Policy, dict[str, Any]] = {
    Policy.FIFO: {"max_pending": _NEVER, "prediction_min_completions": _NEVER},
    Policy.BOUNDED: {"max_pending": round(CAPACITY_PER_S * 10 / FASTER), "prediction_min_completions": _NEVER},
    Policy.THRESHOLDS: {},
    Policy.EDF: {"dispatch": "edf", "max_pending": _NEVER, "prediction_min_completions": _NEVER},
    Policy.EDF_LIMIT: {"dispatch": "edf", "max_pending": 10_000},
}
