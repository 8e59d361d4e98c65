"""Count what a run of the machine executed, and hold it against what the run has to have met."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sluicegate.admission import RefusalReason
from tests.machine.contract import COST_CLASS, LIMITED

COMMANDS_MIN = 2_000
SHARE_MIN = 0.01
REFUSALS_MIN = 10

KINDS = (
    "admit", "claim", "intent", "renew", "settle", "sweep", "promote", "reconcile", "duplicate", "order", "lead",
    "tick", "move_gate", "open_run", "claim_run", "commit_step", "hand_edit", "wait", "crash", "race", "repeat",
    "apply", "restore", "kill_switch", "approve", "outlive",
)  # fmt: skip
REFUSALS = (
    *(reason.value for reason in RefusalReason),
    f"{LIMITED}_limit",
    f"{COST_CLASS}_limit",
)


@dataclass
class Census:
    """Hold what was executed; what found nothing to do was not sent, so it is not in here."""

    commands: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    def missing(self) -> list[str]:
        """Name everything that was met too rarely."""
        total = self.commands.total()
        few = [f"{total} commands, not {COMMANDS_MIN}"] if total < COMMANDS_MIN else []
        few += [
            f"{kind}: {self.commands[kind]} of {total}" for kind in KINDS if self.commands[kind] < SHARE_MIN * total
        ]
        few += [
            f"refused {reason}: {self.refusals[reason]}" for reason in REFUSALS if self.refusals[reason] < REFUSALS_MIN
        ]
        return few

    def __str__(self) -> str:
        parts = (("commands", self.commands), ("refusals", self.refusals), ("seen", self.seen))
        return "; ".join(f"{name} {counted.total()}: {dict(counted.most_common())}" for name, counted in parts)
