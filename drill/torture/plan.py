"""Say what one torture does, before any of it happens: which jobs, by whom, when, and what is struck. Pure.

Callers and conductor are processes of their own and agree by computing the same from the same plan.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import cycle
from typing import Any, Self

from drill.torture.contract import CLASSES

# The load swings about its mean in windows of this length.
_WINDOW_S = 4.0
_SWING = (0.5, 1.0, 2.0, 0.5, 1.0, 1.0)
# After the last new job: repeats that are still to come.
ASKS_AFTER_S = 3.0
# Of each ten jobs one is asked for once more under the same key with another payload.
_OTHER_SHARE = 0.1


class StrikeKind(StrEnum):
    """Name what is done to a running queue."""

    KILL_WORKER = "kill_worker"  # SIGKILL, and a new one under the same name at once
    KILL_SERVER = "kill_server"  # SIGKILL of Redis, and a start on the same data
    KILL_API = "kill_api"  # SIGKILL of one process of `queue serve`
    KILL_AUTOMATION = "kill_automation"  # SIGKILL of controller, executor and reconciler
    HOLD = "hold"  # a named person rejects new work for a moment, then opens
    INCIDENT = "incident"  # the provider fails until the gate drains; a run recovers


@dataclass(frozen=True, slots=True)
class Strike:
    """Hold one strike; at_s counts from the first submission. loses_gate: see `Plan.loses`."""

    at_s: float
    kind: StrikeKind
    loses_gate: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold one torture. `loses`: the server forgets what it had not forced to the disk in the last second.

    starts_at is Unix time; urls and folder are where the parts are.
    """

    jobs: int
    seed: int
    rate_per_s: float
    callers: int
    workers: int
    loses: bool
    redis_url: str = ""
    api_urls: tuple[str, ...] = ()
    starts_at: float = 0.0
    settles_within_s: float = 60.0

    @property
    def lasts_s(self) -> float:
        """Give how long new jobs come."""
        return self.jobs / self.rate_per_s

    @property
    def asks_until(self) -> float:
        """Give when the last repeat may be sent, Unix time."""
        return self.starts_at + self.lasts_s + ASKS_AFTER_S

    def to_json(self) -> str:
        """Render it for the callers."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**{**raw, "api_urls": tuple(raw["api_urls"])})


@dataclass(frozen=True, slots=True)
class Life:
    """Hold how one job is submitted: by `first` at at_s, and by `twin` lag_s later; asks_other: also with another
    payload."""

    number: int
    key: str
    job_class: str
    at_s: float
    first: int
    twin: int
    lag_s: float
    asks_other: bool


def lives(plan: Plan) -> Iterator[Life]:
    """Give every job of a plan in the order of its first submission."""
    rng = random.Random(plan.seed)
    names, shares = list(CLASSES), [declared.share for declared in CLASSES.values()]
    for number, at_s in zip(range(1, plan.jobs + 1), _instants(plan.rate_per_s), strict=False):
        first = rng.randrange(plan.callers)
        twin = (first + rng.randrange(1, plan.callers)) % plan.callers if plan.callers > 1 else first
        yield Life(
            number,
            f"torture:{plan.seed}:{number}",
            rng.choices(names, shares)[0],
            at_s,
            first,
            twin,
            _lag(rng),
            rng.random() < _OTHER_SHARE,
        )


def _lag(rng: random.Random) -> float:
    """Draw how much later the twin comes: at the same moment, soon, or when the job has an end."""
    kind = rng.random()
    if kind < 0.4:
        return 0.0
    return rng.uniform(0.02, 0.5) if kind < 0.8 else rng.uniform(1.0, ASKS_AFTER_S)


def _instants(rate_per_s: float) -> Iterator[float]:
    """Give the times of submissions: the rate swings about its mean."""
    begins = 0.0
    for factor in cycle(_SWING):
        count = max(1, round(rate_per_s * factor * _WINDOW_S))
        for number in range(count):
            yield begins + number * _WINDOW_S / count
        begins += _WINDOW_S


def strikes(plan: Plan) -> tuple[Strike, ...]:
    """Give what is struck and when, oldest first: drawn from the seed, the server twice whatever the length.

    Short tortures leave out what takes longer than they do: the automation service, an incident with its run.
    """
    rng = random.Random(plan.seed + 1)
    lasts_s = plan.lasts_s

    def at(share: float, spread: float = 0.03) -> float:
        return (share + rng.uniform(-spread, spread)) * lasts_s

    found = [
        Strike(at(0.30), StrikeKind.KILL_SERVER),
        Strike(at(0.62), StrikeKind.KILL_SERVER, loses_gate=plan.loses),
        Strike(at(0.15), StrikeKind.HOLD),
    ]
    found += [Strike(at(0.4, 0.3), StrikeKind.KILL_WORKER) for _ in range(max(2, round(lasts_s / 5)))]
    if lasts_s >= 30:
        found += [Strike(at(0.22), StrikeKind.KILL_API), Strike(at(0.52), StrikeKind.KILL_AUTOMATION)]
    if lasts_s >= 120:
        found.append(Strike(at(0.75), StrikeKind.INCIDENT))
    return tuple(sorted(found, key=lambda strike: strike.at_s))
