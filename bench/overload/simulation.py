"""Simulate earliest deadline first under the backlog limit, without a queue: `python -m bench.overload.simulation`.

It shows what the rules alone come to, with so much time between two jobs of a slot, which the limit does not see.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush

from bench.overload.backlog import Backlog, Class
from bench.overload.plan import BACKLOG_LIMIT, FAIR_SHARE, MIX, SLOTS, Ask, Policy, Shape, asks, contract_of
from bench.overload.scoring import Outcome, Score, score
from bench.overload_bench import BURST, STEADY, lines

GAPS_MS = (2, 6, 12)


class Simulation:
    """Play one load by the rules of one contract; a slot takes its next job `gap_ms` after the one before."""

    def __init__(self, backlog_limit: float, gap_ms: float) -> None:
        contract = contract_of(Policy.EDF_LIMIT, backlog_limit)
        self._gap_ms = gap_ms
        self._backlog = Backlog(
            SLOTS,
            round(contract.timings.margin_s * 1000),
            backlog_limit,
            {
                name: Class(round(one.deadline_s * 1000), FAIR_SHARE[name], one.mean_s * 1000)
                for name, one in MIX.items()
            },
        )
        # By deadline; and when each slot is free again.
        self._ready: list[tuple[int, int, Ask]] = []
        self._free = [0.0] * SLOTS

    def run(self, shape: Shape, seed: int) -> Iterator[Outcome]:
        """Give what becomes of each job."""
        for ask in asks(shape, seed):
            now = int(ask.at_s * 1000)
            yield from self._start_until(now)
            deadline = now + round(MIX[ask.job_class].deadline_s * 1000)
            if self._backlog.full(ask.job_class, now, deadline):
                yield _outcome(ask, deadline, accepted=False, ended_ms=None)
            else:
                insort(self._backlog.due[ask.job_class], deadline)
                heappush(self._ready, (deadline, ask.number, ask))
        yield from self._start_until(sys.maxsize)

    def _start_until(self, now: int) -> Iterator[Outcome]:
        """Start what waits as slots become free, until now; gives what has ended or expired by that."""
        while self._ready and self._free[0] <= now:
            deadline, _, ask = heappop(self._ready)
            due = self._backlog.due[ask.job_class]
            due.pop(bisect_left(due, deadline))
            free_at = heappop(self._free)
            begins = max(free_at, ask.at_s * 1000)
            if deadline - begins < self._backlog.margin_ms:
                heappush(self._free, free_at)
                yield _outcome(ask, deadline, accepted=True, ended_ms=None)
                continue
            ends = begins + ask.service_s * 1000
            heappush(self._free, ends + self._gap_ms)
            yield _outcome(ask, deadline, accepted=True, ended_ms=ends)


def _outcome(ask: Ask, deadline: int, *, accepted: bool, ended_ms: float | None) -> Outcome:
    return Outcome(
        ask.job_class,
        ask.service_s,
        ask.at_s,
        deadline / 1000,
        accepted=accepted,
        succeeded=ended_ms is not None,
        ended_s=None if ended_ms is None else ended_ms / 1000,
        reason="" if accepted else "deadline_unreachable",
    )


def simulated(shape: Shape, gap_ms: float, backlog_limit: float = BACKLOG_LIMIT, seed: int = 1) -> Score:
    """Give the figures of one load."""
    outcomes = list(Simulation(backlog_limit, gap_ms).run(shape, seed))
    return score(f"gap {gap_ms:g} ms", shape, outcomes, len(outcomes))


def main() -> None:
    """Print the table of all loads and gaps."""
    scores = [simulated(shape, gap_ms) for shape in (*STEADY, BURST) for gap_ms in GAPS_MS]
    print("\n".join(lines(scores)))


if __name__ == "__main__":
    main()
