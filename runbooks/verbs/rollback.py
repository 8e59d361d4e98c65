"""rollback: how a run ends when it fails: closed first, with a listed reason, then what puts the surroundings right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from runbooks.context import Context
from runbooks.verbs.command import Command
from runbooks.verbs.http import Http
from sluicegate import keys as names
from sluicegate.gate import RollbackReason

CLOSED = "closed"
# The parts of a rollback have places of their own in a run's journal, past those of every step.
FIRST_PLACE = 100
LAST_PLACE = 199


class Restore(StrEnum):
    """Name what a rollback puts back as it was before the run."""

    PROVIDER = "provider"  # where the workers were pointed before this run's set_provider


@dataclass(frozen=True, slots=True)
class Rollback:
    """Hold where it ends, the reason by cause, what is put back, and the calls after the gate is closed, in order.

    `to` and `reasons` are kept as written, so that the lints can refuse what is not closed or not listed.
    """

    to: str
    reasons: Mapping[str, str]
    hooks: tuple[Http | Command, ...]
    restore: tuple[Restore, ...]

    def reason(self, cause: str) -> RollbackReason:
        """Give the reason for a cause: a step's verb or a RunCause.

        Raises KeyError where the file has none, which the lints refuse.
        """
        return RollbackReason(self.reasons[str(cause)])

    def lines(self, context: Context) -> Iterator[str]:
        """Say what follows the gate's closing, in order; a hook without an address is none."""
        if Restore.PROVIDER in self.restore:
            yield f"point the workers back at where they were before this run ({context.keys(names.ENDPOINT)})"
        for hook in self.hooks:
            line = hook.call_line(context)
            if line is not None:
                yield line
