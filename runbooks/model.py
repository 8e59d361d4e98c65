"""Type a runbook: what it is for, when it runs, its steps in order, and how it rolls back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from runbooks.conditions import Condition
from runbooks.context import Context
from runbooks.rehearsal_model import RunbookTest
from runbooks.values import Duration
from runbooks.verbs.rollback import Rollback
from runbooks.verbs.step import NoData, StepParams
from runbooks.verdict import CheckResult, Verdict, any_of
from sluicegate.gate import RollbackReason
from sluicegate.gate import Runbook as LockHolder
from sluicegate.telemetry import Telemetry


class OnTimeout(StrEnum):
    """Name what a step does when its time is up."""

    ROLLBACK = "rollback"  # the run's rollback, with the reason that the file gives for this step
    HOLD = "hold"  # stay, and page until a named person decides
    END = "end"  # the run ends as failed and the gate stays as it is; for runs that hold no lock


class RunCause(StrEnum):
    """Name what may roll a run back from any step; a failed or late step is named by its verb."""

    BREACH = "breach"  # the controller saw a breach between green and the ramp's end
    DUPLICATE = "duplicate"  # a confirmed duplicate side effect
    ABORT = "abort"  # a named person
    HAND_EDIT = "hand_edit"  # somebody wrote the raw keys
    KILL_SWITCH = "kill_switch"  # of the queue, or the global one
    BREAKER = "breaker"  # too many runs at once
    MAX_RUNTIME = "max_runtime"  # the run as a whole took too long


class NotifyWhen(StrEnum):
    """Name the moments a run tells people about."""

    STARTED = "started"
    HOLDING = "holding"
    ROLLED_BACK = "rolled_back"
    REOPENED = "reopened"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Step:
    """Hold one step: its place from 1, its verb's parameters, and what happens when its time is up."""

    seq: int
    params: StepParams
    timeout: Duration
    on_timeout: OnTimeout

    @property
    def verb(self) -> str:
        return self.params.word


@dataclass(frozen=True, slots=True)
class Trigger:
    """Say which alerts ask for this runbook, and which of their labels names the queue."""

    alerts: Mapping[str, tuple[str, ...]]
    queue_label: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether an alert with these labels asks for the runbook: every matcher has one of its values."""
        return all(labels.get(name) in values for name, values in self.alerts.items())


@dataclass(frozen=True, slots=True)
class Confirm:
    """Say which figures confirm an alert: any of the conditions is enough."""

    any_of: tuple[Condition, ...]
    no_data: NoData | None

    def checks(self, telemetry: Telemetry, context: Context) -> tuple[CheckResult, ...]:
        return tuple(condition.check(telemetry, context) for condition in self.any_of)

    def verdict(self, telemetry: Telemetry, context: Context) -> Verdict:
        """Give pass where the figures of this instant confirm, inconclusive where they cannot say."""
        return any_of(self.checks(telemetry, context))


@dataclass(frozen=True, slots=True)
class Notify:
    """Say when people are told, and where: `log`, or `kind:address`."""

    when: tuple[NotifyWhen, ...]
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runbook:
    """Hold one runbook; `digest` is 16 hex digits over its content but the tests, which a run pins.

    One whose runs hold no lock has no rollback.
    """

    name: str
    summary: str
    owner: str
    max_runtime: Duration
    trigger: Trigger
    confirm: Confirm
    steps: tuple[Step, ...]
    rollback: Rollback | None
    notify: Notify
    tests: tuple[RunbookTest, ...]
    digest: str
    source: str

    @property
    def beside(self) -> bool:
        """Say whether its runs hold no lock: of the gate they may move only admit → reject_new (contract §7)."""
        return self.name not in set(LockHolder)

    def reason(self, cause: str) -> RollbackReason:
        """Give the reason for a cause; raises KeyError where there is none, which the lints refuse."""
        if self.rollback is None:
            raise KeyError(cause)
        return self.rollback.reason(cause)

    def step(self, verb: str) -> Step | None:
        """Give the first step of a verb, or None."""
        return next((step for step in self.steps if step.verb == verb), None)
