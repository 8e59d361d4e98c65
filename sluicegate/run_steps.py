"""Which steps can a run be in? Runbooks are written in these words, and figures and journals name them.

A verb of your own is an `OutsideStep` under the entry point `sluicegate.steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class VerbName(StrEnum):
    """Name the verbs of a runbook's steps; `runbooks/verbs` has a file for each."""

    FREEZE = "freeze"
    SNAPSHOT = "snapshot"
    DRAIN = "drain"
    FIX = "fix"
    RECOVER = "recover"
    CANARY = "canary"
    BURN_DOWN = "burn_down"
    REOPEN = "reopen"
    AUDIT = "audit"
    APPROVE = "approve"
    SET_PROVIDER = "set_provider"
    HTTP = "http"
    COMMAND = "command"
    WAIT_FOR = "wait_for"
    REJECT = "reject"
    RECONCILE = "reconcile"
    NOTIFY = "notify"


# What a rollback's hooks are journaled under; no runbook has it among its steps.
ROLLBACK_VERB = "rollback"


class StepResult(StrEnum):
    """Name how a step ends; the functions count each."""

    DONE = "done"  # the next step may start
    ROLLED_BACK = "rolled_back"  # the run's rollback began in it
    INTERRUPTED = "interrupted"  # the run ended in it otherwise: aborted, superseded, lost


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """Hold what a step outside is given; every repeat of it carries the same idempotency key."""

    run_id: str
    queue: str
    idempotency_key: str
    parameters: Mapping[str, Any]


class NotDone(Exception):
    """Say that a call has certainly not been carried out, so that it may be made again; any other error leaves that
    unknown, and is handled by the runbook's `on_unknown`."""


class OutsideStep(Protocol):
    """Be a verb of your own: it acts on something outside Redis, moves no gate and touches no job.

    `schema` is a JSON Schema of its own parameters (an object with `properties`); texts in them are templates, and
    `timeout`, `on_timeout` and `on_unknown` come on top. `act` and `probe` block, in a thread of their own.
    """

    schema: Mapping[str, Any]

    def line(self, call: OutsideCall) -> str:
        """Say exactly what `act` will do, without secrets; it depends on the call alone."""
        ...

    def act(self, call: OutsideCall) -> str:
        """Do it and say what came of it; raises NotDone where it has certainly not been done."""
        ...

    def probe(self, call: OutsideCall) -> bool | None:
        """Say whether it has been done; None where that cannot be told."""
        ...
