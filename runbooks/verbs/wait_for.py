"""wait_for: wait until figures are as they should be, for as long as they should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.quantity import in_words
from runbooks.values import Duration
from runbooks.verbs.step import StepParams, VerbName
from runbooks.verdict import CheckResult
from runbooks.watch import Look, Standing, Watch, held_ms
from runbooks.where import Where
from sluicegate.telemetry import Telemetry

# Looks are written down while they hold, a few in each `for`; more than half of it without one is a break.
_LOOKS = 6
_GAP = 2
_SHORTEST_LOOK_MS = 200.0
_SHORTEST_GAP_MS = 1000.0


@dataclass(frozen=True, slots=True)
class WaitFor(StepParams):
    """Hold what is watched, and for how long it must hold without a break; None for one look."""

    watch: Watch
    hold_for: Duration | None
    verb: ClassVar[str] = VerbName.WAIT_FOR

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> WaitFor:
        hold_for = fields.get("for")
        return cls(
            watch=Watch.read(fields, where),
            hold_for=None if hold_for is None else Duration.read(hold_for, where.at("for")),
        )

    def for_ms(self, context: Context) -> float:
        """Give how long it must hold; 0 for one look."""
        return self.hold_for.resolve(context) * 1000 if self.hold_for is not None else 0.0

    def look_ms(self, context: Context) -> float:
        """Give how far apart the looks are that are written down while it holds."""
        return max(self.for_ms(context) / _LOOKS, _SHORTEST_LOOK_MS)

    def longest_gap_ms(self, context: Context) -> float:
        """Give how far apart two looks may be to be of one piece."""
        return max(self.for_ms(context) / _GAP, _SHORTEST_GAP_MS)

    def has_held(self, looks: Sequence[Look], context: Context) -> bool:
        """Say whether it holds by the last look, and has for as long as it should."""
        if not looks or looks[-1].standing is not Standing.HOLDS:
            return False
        return held_ms(looks, self.longest_gap_ms(context)) >= self.for_ms(context)

    def line(self, context: Context) -> str:
        held = f" for {in_words(self.hold_for.resolve(context))} without a break" if self.hold_for is not None else ""
        text = f"wait until {self.watch.worded(context)}{held}"
        return f"{text}; no data is neither a pass nor a fail; no gate is moved"

    def checks(
        self, context: Context, telemetry: Telemetry, evidence: Evidence = NO_EVIDENCE
    ) -> tuple[CheckResult, ...]:
        return self.watch.judge(telemetry, context, evidence).checks

    def queries(self, context: Context) -> tuple[str, ...]:
        return self.watch.queries(context)
