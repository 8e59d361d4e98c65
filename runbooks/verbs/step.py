"""Say what every verb offers: a line that says what it will do, and its checks."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Protocol

from runbooks.context import Context
from runbooks.verdict import CheckResult
from sluicegate.run_steps import VerbName
from sluicegate.telemetry import Telemetry

# The verbs' names are imported from here.
__all__ = ["NoData", "OnUnknown", "StepParams", "VerbName"]


class NoData(StrEnum):
    """Name what a gate does while a figure has no sample."""

    HOLD = "hold"  # neither pass nor fail: measure again until the time is up
    ROLLBACK = "rollback"  # the run's rollback


class OnUnknown(StrEnum):
    """Name what follows a call outside whose outcome was lost."""

    PROBE = "probe"  # ask whether it was done
    RETRY = "retry"  # call again under the same idempotency key
    HOLD = "hold"  # wait for a named person


class StepParams(Protocol):
    """Be the typed parameters of one verb."""

    verb: ClassVar[VerbName]

    def line(self, context: Context) -> str:
        """Say exactly what the step will do; it depends on the runbook, the settings and the run's id only."""
        ...

    def checks(self, context: Context, telemetry: Telemetry) -> tuple[CheckResult, ...]:
        """Judge the step's gate by the figures of this instant; empty where the verb has no gate of figures."""
        ...

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        """Give the live figures a reader of the plan needs beside the line."""
        ...
