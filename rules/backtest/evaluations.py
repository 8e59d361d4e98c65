"""At which instants did Prometheus evaluate the rules, and where did it forget what was pending? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

# A Prometheus that starts evaluates twice before it writes ALERTS, so a restart leaves at least three intervals.
_RESTART_INTERVALS = 3


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Hold one evaluation: when it was (Unix ms), and whether it wrote ALERTS and the records."""

    at_ms: int
    told: bool = True
    recorded: bool = True


@dataclass(frozen=True)
class Evaluations:
    """Hold the evaluations of a time, in their order, and the interval between two of them in ms."""

    all: tuple[Evaluation, ...]
    interval_ms: int

    @classmethod
    def found(cls, told_ms: Sequence[int], recorded_ms: Sequence[int]) -> Evaluations:
        """Make them from the times of samples: of an alert that always fires, and of a record beside it."""
        told, recorded = set(told_ms), set(recorded_ms)
        instants = sorted(told | recorded)
        apart = Counter(after - before for before, after in pairwise(instants))
        # Nearly all are an interval apart; where two are as frequent, the shorter one is it.
        interval_ms = min(apart, key=lambda ms: (-apart[ms], ms)) if apart else 1
        return cls(tuple(Evaluation(at, at in told, at in recorded) for at in instants), interval_ms)

    @classmethod
    def regular(cls, from_ms: int, to_ms: int, interval_ms: int) -> Evaluations:
        """Make those that a Prometheus would have made which evaluated at whole intervals."""
        first = -(-from_ms // interval_ms) * interval_ms
        return cls(tuple(map(Evaluation, range(first, to_ms + 1, interval_ms))), interval_ms)

    def thinned(self, step_ms: int) -> Evaluations:
        """Leave out those that are less than a step, in whole intervals, after the last one that stays."""
        step_ms = -(-step_ms // self.interval_ms) * self.interval_ms
        kept: list[Evaluation] = []
        for one in self.all:
            if not kept or one.at_ms - kept[-1].at_ms >= step_ms:
                kept.append(one)
        return Evaluations(tuple(kept), step_ms)

    def since(self, at_ms: int) -> tuple[int, ...]:
        """Give the instants from then on whose ALERTS were written."""
        return tuple(one.at_ms for one in self.all if one.told and one.at_ms >= at_ms)

    @cached_property
    def instants(self) -> tuple[int, ...]:
        return tuple(one.at_ms for one in self.all)

    @cached_property
    def stretches(self) -> tuple[tuple[int, ...], ...]:
        """Cut the instants where Prometheus was started anew: what was pending or firing is forgotten there.

        It was where evaluations without ALERTS follow one with them, or where nothing was written for three intervals
        and no record says that it went on.
        """
        cut: list[list[int]] = []
        before: Evaluation | None = None
        for one in self.all:
            if before is None or self._is_restart(before, one):
                cut.append([])
            cut[-1].append(one.at_ms)
            before = one
        return tuple(tuple(instants) for instants in cut)

    def _is_restart(self, before: Evaluation, after: Evaluation) -> bool:
        silent = before.told and not after.told
        dark = after.at_ms - before.at_ms >= _RESTART_INTERVALS * self.interval_ms and not after.recorded
        return silent or dark

    def grids(self) -> Iterator[tuple[int, int]]:
        """Give first and last instant of what a question at every interval meets exactly, one question after another.

        The rest of an instant by the interval stays as long as neither file, group nor interval of the rules change.
        """
        first = last = None
        for at in self.instants:
            if first is None or last is None or (at - first) % self.interval_ms:
                if first is not None and last is not None:
                    yield first, last
                first = at
            last = at
        if first is not None and last is not None:
            yield first, last
