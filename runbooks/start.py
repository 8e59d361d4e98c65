"""Say whether an alert would start a run now, and if not, which rule stands in its way (contract §7). Pure.

A named person is bound by none of these but the missing data. What was not asked is said to be unseen, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from runbooks.context import Context
from runbooks.model import Runbook
from runbooks.verdict import Verdict
from sluicegate.all_queues import Standing
from sluicegate.gate import DrainState, PinReason
from sluicegate.gate import Runbook as LockHolder
from sluicegate.remedies import BY_NAME, QUEUE_INIT
from sluicegate.run_replies import Asked
from sluicegate.telemetry import Telemetry

_UNSEEN_IN_QUEUE = ("cooldown", "runs an hour")
_UNSEEN_BESIDE = ("the kill switch of all queues", "breaker", "runs at once")
_LOST = (PinReason.UNINITIALISED.value, PinReason.CONTROL_DATA_LOST.value)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Hold the rule that keeps a run from starting, the sentence, and the command that unblocks it."""

    rule: str
    text: str
    unblock: str


@dataclass(frozen=True, slots=True)
class Heard:
    """Hold what the queue says of a run, and what holds over all queues; None where nobody asked, or nobody may."""

    asked: Asked | None = None
    standing: Standing | None = None

    @property
    def unseen(self) -> tuple[str, ...]:
        """Name the rules that were not looked at."""
        in_queue, beside = self.asked is None, self.standing is None
        return (*(_UNSEEN_IN_QUEUE if in_queue else ()), *(_UNSEEN_BESIDE if beside else ()))


NOTHING_HEARD = Heard()


def obstacles(
    runbook: Runbook, telemetry: Telemetry, context: Context, heard: Heard = NOTHING_HEARD
) -> tuple[Obstacle, ...]:
    """Give what stands in the way of an alert's run, in the order the rules are looked at.

    Where the gate cannot be read that alone is told: every other rule would be judged by figures of nothing.
    """
    unreadable = _readable(telemetry)
    if unreadable is not None:
        return (unreadable,)
    found = [
        _pinned(runbook, telemetry),
        _live_beside(runbook, telemetry) if runbook.beside else _live(runbook, telemetry),
        None if runbook.beside else _duplicates(runbook, telemetry),
        _confirmed(runbook, telemetry, context),
        _kill_switch(runbook, telemetry),
        _limited(runbook, heard.asked.forbidden if heard.asked is not None else ""),
        _over_all_queues(runbook, telemetry.queue, heard.asked, heard.standing),
    ]
    return tuple(obstacle for obstacle in found if obstacle is not None)


def _readable(telemetry: Telemetry) -> Obstacle | None:
    gate = telemetry.gate
    if not gate.initialised:
        return Obstacle(
            "uninitialised",
            f"Queue {telemetry.queue} was never opened: its gate reads as drain/closed.",
            QUEUE_INIT,
        )
    if not gate.readable:
        return Obstacle(
            "gate_unreadable",
            f"The gate's own records of queue {telemetry.queue} cannot be read: it reads as drain/closed.",
            "sluicegate gate show",
        )
    return None


def _pinned(runbook: Runbook, telemetry: Telemetry) -> Obstacle | None:
    pin = telemetry.gate.pin
    may_run_pinned = runbook.name == LockHolder.ROLLBACK_AND_AUDIT and pin not in _LOST
    if pin is None or may_run_pinned:
        return None
    note = f" ({telemetry.gate.pin_note})" if telemetry.gate.pin_note else ""
    return Obstacle(
        "pinned",
        f"The gate is pinned, {pin}{note}: an alert is recorded as suppressed until a named person decides.",
        f"sluicegate automation run {runbook.name} --as NAME --reason WHY",
    )


def _live(runbook: Runbook, telemetry: Telemetry) -> Obstacle | None:
    live = telemetry.gate.run
    if live is None:
        return None
    outranks = runbook.name == LockHolder.ROLLBACK_AND_AUDIT and live.runbook != LockHolder.ROLLBACK_AND_AUDIT
    if outranks:
        return None
    return Obstacle(
        "run_live",
        f"Run {live.run_id} of {live.runbook} is live in step {live.step}: an alert attaches to it.",
        "sluicegate automation abort --as NAME --reason WHY",
    )


def _live_beside(runbook: Runbook, telemetry: Telemetry) -> Obstacle | None:
    """One of each may run beside the lock-holding run, and beside the others."""
    live = next((run for run in telemetry.gate.besides if run.runbook == runbook.name), None)
    if live is None:
        return None
    return Obstacle(
        "run_live",
        f"Run {live.run_id} of {live.runbook} is live in step {live.step or 'none yet'}: an alert attaches to it.",
        f"sluicegate automation abort {live.run_id} --as NAME --reason WHY",
    )


def _duplicates(runbook: Runbook, telemetry: Telemetry) -> Obstacle | None:
    number = telemetry.gate.duplicates_unacknowledged
    if number == 0 or runbook.name == LockHolder.ROLLBACK_AND_AUDIT:
        return None
    return Obstacle(
        "duplicates",
        f"{number} confirmed duplicate side effects are acknowledged by nobody: no recovery starts before that.",
        "sluicegate gate acknowledge --as NAME --reason WHY",
    )


def _confirmed(runbook: Runbook, telemetry: Telemetry, context: Context) -> Obstacle | None:
    verdict = runbook.confirm.verdict(telemetry, context)
    gate = telemetry.gate
    drained = gate.drain_state == DrainState.DRAIN and gate.pin is None and gate.run is None
    if verdict is Verdict.PASS or (drained and runbook.name == LockHolder.DRAIN_AND_RECOVER):
        return None
    word = "do not confirm" if verdict is Verdict.FAIL else "are too few to confirm"
    again = f"{context.contract.timings.episode_look_s:g}s"
    return Obstacle(
        "not_confirmed",
        f"The queue's figures {word} an alert: its episode stays open and is looked at again every {again}.",
        f"sluicegate automation run {runbook.name} --as NAME --reason WHY",
    )


def _kill_switch(runbook: Runbook, telemetry: Telemetry) -> Obstacle | None:
    if not telemetry.kill_switch or runbook.name == LockHolder.ROLLBACK_AND_AUDIT:
        return None
    return Obstacle(
        "kill_switch",
        f"The kill switch of queue {telemetry.queue} is on ({telemetry.kill_switch}): a run is refused.",
        "sluicegate automation kill-switch off --as NAME --reason WHY",
    )


def _limited(runbook: Runbook, forbidden: str) -> Obstacle | None:
    says = {
        "cooldown": f"{runbook.name} ended a short while ago and cools down: a run is refused.",
        "runs_per_hour": "The queue has had its runs of this hour: another one is refused.",
    }.get(forbidden)
    if says is None:
        return None
    return Obstacle(forbidden, says, f"sluicegate automation run {runbook.name} --as NAME --reason WHY")


def _over_all_queues(runbook: Runbook, queue: str, asked: Asked | None, standing: Standing | None) -> Obstacle | None:
    """Give what forbids it on every queue, in the order in which it is looked at; an audit is bound by none of it."""
    if standing is None or runbook.name == LockHolder.ROLLBACK_AND_AUDIT:
        return None
    if standing.kill is not None:
        return Obstacle(
            "kill_switch_of_all_queues",
            f"The kill switch of all queues is on ({standing.kill.said}): a run is refused.",
            f"sluicegate automation kill-switch off --all-queues {BY_NAME}",
        )
    if standing.breaker is not None:
        return Obstacle(
            "breaker",
            f"The breaker of all queues has tripped ({standing.breaker.said}): a run is refused.",
            f"sluicegate automation reset-breaker {BY_NAME}",
        )
    others = [f"{holder.run} of queue {holder.queue}" for holder in standing.holders if holder.queue != queue]
    limit = asked.runs_at_once if asked is not None else None
    if runbook.beside or limit is None or len(others) < limit:
        return None
    return Obstacle(
        "concurrent_runs",
        f"{len(others)} runs are counted as live on other queues ({', '.join(others)}), and {limit} may be at once: a "
        "run is refused, unless one of them is found to be over.",
        f"sluicegate automation run {runbook.name} {BY_NAME}",
    )
