"""Replay `for` and `keep_firing_for` over what an expression gave at every evaluation. Pure.

What Prometheus does with one alert of one set of labels (rules/alerting.go, `AlertingRule.Eval`): with a sample it is
pending, and firing once it has been so for at least `for`; without one a pending alert ends at once, and a firing one
when `keep_firing_for` has passed since the first evaluation without a sample.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class AlertState(StrEnum):
    """Name the states that Prometheus records in ALERTS."""

    PENDING = "pending"  # its condition moves it on, after `for`
    FIRING = "firing"  # its condition ends it, after `keep_firing_for`


@dataclass(frozen=True, slots=True)
class Holding:
    """Hold how long a condition must last, and how long its alert outlasts it, in ms."""

    for_ms: int
    keep_ms: int


@dataclass(frozen=True, slots=True)
class Firing:
    """Hold one stretch of firing in Unix ms: from its first evaluation to the one that ended it, or the very last."""

    from_ms: int
    to_ms: int


def replay(
    stretches: Iterable[Sequence[int]], present: Container[int], holding: Holding
) -> Iterator[tuple[int, AlertState]]:
    """Give the state at each evaluation at which the alert is active.

    A stretch holds the instants of the evaluations between two restarts of Prometheus, which forgets what was pending
    or firing; `present` are those at which the expression gave a sample, whatever its value.
    """
    for instants in stretches:
        state, active_at, lost_at = None, 0, None
        for at in instants:
            if at in present:
                lost_at = None
                if state is None:
                    state, active_at = AlertState.PENDING, at
                if at - active_at >= holding.for_ms:
                    state = AlertState.FIRING
            elif state is AlertState.FIRING:
                lost_at = at if lost_at is None else lost_at
                if at - lost_at >= holding.keep_ms:
                    state = None
            else:
                state = None
            if state is not None:
                yield at, state


def stretches_of(instants: Container[int], among: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Join instants that follow each other: each stretch's first one, and the one after it that is no longer in it.

    `among` are all instants, in their order; a stretch that reaches the last of them ends there.
    """
    begun: int | None = None
    for at in among:
        if begun is None and at in instants:
            begun = at
        elif begun is not None and at not in instants:
            yield begun, at
            begun = None
    if begun is not None:
        yield begun, among[-1]


def firings(states: Iterable[tuple[int, AlertState]], told: Sequence[int]) -> tuple[Firing, ...]:
    """Join evaluations in which an alert fires into stretches; `told` are all evaluations, in their order."""
    firing = {at for at, state in states if state is AlertState.FIRING}
    return tuple(Firing(begun, ended) for begun, ended in stretches_of(firing, told))
