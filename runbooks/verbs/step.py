"""Say what every verb offers: a line that says what it will do, its checks and its figures."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.verdict import CheckResult
from sluicegate.run_steps import VerbName
from sluicegate.telemetry import Telemetry

# The verbs' names are imported from here.
__all__ = ["Holder", "NoData", "OnUnknown", "StepParams", "VerbName"]


class NoData(StrEnum):
    """Name what a gate does while a figure has no sample."""

    HOLD = "hold"  # neither pass nor fail: measure again until the time is up
    ROLLBACK = "rollback"  # the run's rollback


class OnUnknown(StrEnum):
    """Name what follows a call outside whose outcome was lost."""

    PROBE = "probe"  # ask whether it was done
    RETRY = "retry"  # call again under the same idempotency key
    HOLD = "hold"  # wait for a named person


class Holder(StrEnum):
    """Name which runbooks may have a verb among their steps."""

    RECOVERY = "recovery"  # drain-and-recover alone: it moves the gate or the jobs
    BESIDE = "beside"  # those alone that hold no lock
    ANY = "any"  # all of them


class StepParams:
    """Be the typed parameters of one verb; a verb overrides what it has."""

    __slots__ = ()
    verb: ClassVar[str]
    holder: ClassVar[Holder] = Holder.ANY

    @property
    def word(self) -> str:
        """Give the verb as it stands in the file."""
        return self.verb

    def line(self, context: Context) -> str:
        """Say exactly what the step will do; it depends on the runbook, the settings and the run's id only."""
        raise NotImplementedError

    def checks(
        self, context: Context, telemetry: Telemetry, evidence: Evidence = NO_EVIDENCE
    ) -> tuple[CheckResult, ...]:
        """Judge the step's gate by the figures of this instant; empty where the verb has no gate of figures."""
        return ()

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        """Give the live figures a reader of the plan needs beside the line."""
        return ()

    def queries(self, context: Context) -> tuple[str, ...]:
        """Give the PromQL that the checks need answers to."""
        return ()
