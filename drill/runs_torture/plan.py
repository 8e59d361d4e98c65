"""Plan a torture of runs: which story each run tells, and what is done to the parts meanwhile. All from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

LEAST_HITS = 5
# So many runs are enough for every kind of fault to be met LEAST_HITS times.
_WHOLE = 100


class Story(StrEnum):
    """Name what happens to one run, and so how it should end."""

    RECOVERS = "recovers"  # the hook mends the path
    HOOK_LOSES_ANSWER = "hook_loses_answer"  # the hook mends it, and its answer never comes
    HOOK_BUSY = "hook_busy"  # the hook says 503 twice, then mends it
    USELESS_HOOK = "useless_hook"  # the hook says 200 and mends nothing: canaries fail
    BREAKS_AGAIN = "breaks_again"  # the provider fails again after green
    ABORTED = "aborted"  # a named person ends it in mid-run
    HAND_EDIT = "hand_edit"  # somebody writes the raw key
    DUPLICATE = "duplicate"  # a duplicate is confirmed in mid-run: the audit takes its place
    KILL_SWITCH = "kill_switch"  # no run goes on
    NAN_GATE = "nan_gate"  # somebody writes over what the gate counts, and takes it away again
    FLAPPING = "flapping"  # the alert fires, ends and fires again, each told twice
    BY_PERSON = "by_person"  # nothing is wrong: a named person wants it


class Mischief(StrEnum):
    """Name what is done to the parts that all queues share."""

    KILL_EXECUTOR = "kill_executor"  # SIGKILL of the replica that owns a run, at a fresh entry of its journal
    STOP_EXECUTOR = "stop_executor"  # SIGSTOP of it for longer than its leases, then SIGCONT
    KILL_SERVER = "kill_server"  # SIGKILL of Redis, and a start on its append-only file
    RESTART_ALERTMANAGER = "restart_alertmanager"  # SIGKILL of one of the two, and a start
    DEAD_EXPORTER = "dead_exporter"  # no exporter for some seconds
    DROP_WEBHOOKS = "drop_webhooks"  # some seconds without delivery: the senders are told 503
    DOUBLE_WEBHOOKS = "double_webhooks"  # each delivered twice, to two replicas
    LOSE_ANSWERS = "lose_answers"  # delivered, and the sender is told 503


# How often each is drawn: what takes everybody down is rarer.
_WEIGHTS = {
    Mischief.KILL_EXECUTOR: 8,
    Mischief.STOP_EXECUTOR: 10,
    Mischief.KILL_SERVER: 3,
    Mischief.RESTART_ALERTMANAGER: 3,
    Mischief.DEAD_EXPORTER: 3,
    Mischief.DROP_WEBHOOKS: 3,
    Mischief.DOUBLE_WEBHOOKS: 3,
    Mischief.LOSE_ANSWERS: 3,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold one torture: runs that must end, on so many queues at once, within so many seconds."""

    runs: int
    queues: int
    seed: int
    within_s: float

    @property
    def names(self) -> tuple[str, ...]:
        """Give the queues' names."""
        return tuple(f"mill-{number}" for number in range(self.queues))

    @property
    def least_hits(self) -> int:
        """Say how often each kind of fault must be met for the torture to prove anything; short ones demand none."""
        return LEAST_HITS if self.runs >= _WHOLE else 0


def stories(plan: Plan, queue: int) -> Iterator[Story]:
    """Give one queue's stories without end: all of them in a shuffled order, again and again."""
    rng = random.Random(f"{plan.seed}/stories/{queue}")
    while True:
        told = list(Story)
        rng.shuffle(told)
        yield from told


def mischiefs(plan: Plan) -> Iterator[Mischief]:
    """Give what is done, without end: each kind as often as its weight says in every round, shuffled."""
    rng = random.Random(f"{plan.seed}/mischief")
    while True:
        done = [kind for kind, weight in _WEIGHTS.items() for _ in range(weight)]
        rng.shuffle(done)
        yield from done
