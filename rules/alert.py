"""What an alert is: when it fires, who is woken, what the robot does and what a person does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from rules.cases import Case
from sluicegate.gate import BesideRunbook, Runbook
from sluicegate.records import AlertName
from sluicegate.telemetry import QUEUE_LABEL


class Severity(StrEnum):
    """Name who is woken."""

    PAGE = "page"  # a person, now
    TICKET = "ticket"  # a person, in the morning
    NONE = "none"  # nobody; another machine listens


class SluicegateAction(StrEnum):
    """Name what Sluicegate does about it by itself."""

    OBSERVE = "observe"  # nothing: a person decides
    REJECT_NEW = "reject_new"  # new jobs are refused, workers go on; the webhook opens reject-and-prepare
    DRAIN = "drain"  # the webhook opens drain-and-recover
    HOLD = "hold"  # nothing is loosened
    RECONCILE = "reconcile"  # the webhook opens reconcile-unknown
    ROLLBACK = "rollback"  # the webhook opens rollback-and-audit


RUNBOOK_OF: dict[SluicegateAction, Runbook | BesideRunbook] = {
    SluicegateAction.REJECT_NEW: BesideRunbook.REJECT_AND_PREPARE,
    SluicegateAction.DRAIN: Runbook.DRAIN_AND_RECOVER,
    SluicegateAction.ROLLBACK: Runbook.ROLLBACK_AND_AUDIT,
    SluicegateAction.RECONCILE: BesideRunbook.RECONCILE_UNKNOWN,
}
# A hold is watched where there is a recovery to watch; where figures are missing there is nothing to look at.
_RUNBOOK_OF_ALERT: dict[AlertName, BesideRunbook] = {AlertName.RECOVERY_HOLD: BesideRunbook.HOLD_RECOVERY}


# A record's name as it stands in an expression: level, metric, operation, and what is selected.
_RECORD = re.compile(r"[a-z_]+:[a-z0-9_]+:[a-z]+(?=\{)")


@dataclass(frozen=True, slots=True)
class Alert:
    """Hold one alert of one queue.

    `signal` names the one figure it watches; `when` is the condition in words, `expression` in PromQL, a guard a line.
    Durations are seconds; `seen_after_s` is what the expression itself needs to notice, `looks_back_s` how far its
    windows reach. Annotations hold no figures, so a repeated notification says the same words. `waits_by_design` says
    why a page's time is held against no deadline, `waivers` which lints it may ignore and why. `cases` are the
    situations the unit tests are made from.
    """

    name: AlertName
    queue: str
    signal: str
    when: str
    expression: str
    for_s: float
    severity: Severity
    action: SluicegateAction
    summary: str
    description: str
    by_itself: str
    by_a_person: tuple[str, ...]
    runbook_url: str
    dashboard_url: str
    keep_firing_for_s: float = 0
    seen_after_s: float = 0
    looks_back_s: float = 0
    waits_by_design: str = ""
    waivers: tuple[tuple[str, str], ...] = ()
    cases: tuple[Case, ...] = field(default=(), repr=False)

    @property
    def runbook(self) -> Runbook | BesideRunbook | None:
        """Name the runbook that the webhook's receiver starts, if any."""
        return _RUNBOOK_OF_ALERT.get(self.name) or RUNBOOK_OF.get(self.action)

    @property
    def reads(self) -> tuple[str, ...]:
        """Name the records that the expression reads, each once, in their order."""
        return tuple(dict.fromkeys(_RECORD.findall(self.expression)))

    @property
    def labels(self) -> dict[str, str]:
        """Give the labels the rule sets; `queue` is always one of them, or inhibition would reach strangers."""
        labels = {
            QUEUE_LABEL: self.queue,
            "severity": self.severity.value,
            "signal": self.signal,
            "sluicegate_action": self.action.value,
        }
        if self.runbook is not None:
            labels["runbook"] = self.runbook.value
        return labels

    @property
    def annotations(self) -> dict[str, str]:
        """Give what a person reads."""
        return {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": self.runbook_url,
            "dashboard_url": self.dashboard_url,
        }
