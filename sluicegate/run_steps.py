"""Which steps can a run be in? Runbooks are written in these words, and figures and journals name them."""

from __future__ import annotations

from enum import StrEnum


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


class StepResult(StrEnum):
    """Name how a step ends; the functions count each."""

    DONE = "done"  # the next step may start
    ROLLED_BACK = "rolled_back"  # the run's rollback began in it
    INTERRUPTED = "interrupted"  # the run ended in it otherwise: aborted, superseded, lost
