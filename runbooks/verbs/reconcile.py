"""reconcile: ask ledger and provider what became of the unknown jobs, until none is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.verbs.step import StepParams, VerbName
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.http_address import masked
from sluicegate.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Reconcile(StepParams):
    """Reconcile without parameters: who is asked, and when, is in the settings."""

    verb: ClassVar[str] = VerbName.RECONCILE

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Reconcile:
        return cls()

    def line(self, context: Context) -> str:
        settings = context.settings.reconcile
        asked = "the ledger" if settings.http_url is None else f"the ledger, then {masked(settings.http_url)}"
        return (
            f"ask {asked} about every job that is unknown for {in_words(settings.after_s)}, every "
            f"{in_words(settings.every_s)}, under its idempotency key; write what is certain "
            f"({context.keys(names.RECONCILE_LOG)}); what stays unclear stays unknown and is never run again by "
            "itself; done when no job is unknown"
        )

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return (("unknown", telemetry.unknown), ("blocked", telemetry.blocked))
